"""Phrase tables made binary by Moses' programs, and asked back."""
