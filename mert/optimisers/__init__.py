"""Optimisers of the weights on n-best lists: MERT, MIRA."""
