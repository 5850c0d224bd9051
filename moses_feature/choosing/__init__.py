"""The best system that a time allows."""
