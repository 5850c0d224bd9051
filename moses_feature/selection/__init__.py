"""Selecting lines of a corpus that are like those of a domain."""
