"""New features for n-best lists."""
