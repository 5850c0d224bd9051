"""A trained network that learns from n-best lists (expected BLEU)."""
