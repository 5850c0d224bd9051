"""Commands that tune weights, compare systems, and decode as tuning does."""
