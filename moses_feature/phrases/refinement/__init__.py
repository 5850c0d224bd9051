"""Refining a trained network on n-best lists (expected BLEU)."""
