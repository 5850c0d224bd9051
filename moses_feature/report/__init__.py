"""Pages that show what a table's scores and a network do, for a browser without a network."""
