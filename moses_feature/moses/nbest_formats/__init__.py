"""N-best lists of other decoders, as Moses writes them."""
