"""What everything stands on: files, processes, signals, errors, and compiled code."""
