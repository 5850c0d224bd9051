"""Phrase tables with the network's columns: written, described, checked."""
