"""N-best lists of other decoders, read as if Moses had written them; formats by name."""
