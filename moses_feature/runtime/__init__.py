"""The base of all packages: files, processes, signals, errors, and compiled code."""
