"""Tune the log-linear weights of Moses systems, wherever their features come from."""

import moses_feature  # noqa: F401  # it settles threads before numpy is loaded
