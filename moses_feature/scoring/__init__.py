"""log p(target | source) of many phrase pairs at once."""
