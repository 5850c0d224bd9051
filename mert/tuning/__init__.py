"""Tuning runs with a decoder, and tuning on existing n-best lists."""
