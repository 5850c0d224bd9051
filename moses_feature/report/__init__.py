"""HTML pages about a table's scores and its network, viewable offline."""
