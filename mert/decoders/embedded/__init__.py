"""The embedded phrase-based decoder."""
