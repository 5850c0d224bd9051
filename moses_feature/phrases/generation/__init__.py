"""Generating targets with a network: sampling and beam search."""
