"""Translating new text with a tuned system, a sentence at a time."""
