"""Phrase tables with the network's columns: writing, describing and checking them."""
