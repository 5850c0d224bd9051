"""Comparing systems, as in the paper's Table 1."""
