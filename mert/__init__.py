"""Tune the log-linear weights of Moses systems; knows nothing of where the features come from."""
