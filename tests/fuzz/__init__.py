"""Damaged input, and interrupts at any moment."""
