"""Tune the log-linear weights of Moses systems, wherever their features come from."""
