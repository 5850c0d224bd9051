"""Writing phrase tables in Moses' binary formats, and checking them."""
