"""A Ray cluster, and the actors that work on it."""
