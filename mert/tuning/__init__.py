"""Tuning runs, tuning on lists, and what new columns would bring."""
