"""N-best lists of other decoders, converted to lines of Moses' format."""
