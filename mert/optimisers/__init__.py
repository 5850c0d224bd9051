"""Weights with the best BLEU on n-best lists: MERT, MIRA, PRO."""
