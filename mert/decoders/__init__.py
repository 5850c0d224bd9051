"""Decoders that translate with given weights: the embedded one, and real Moses."""
