"""Commands for n-best lists."""
