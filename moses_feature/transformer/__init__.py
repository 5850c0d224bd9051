"""The Transformer, a network of whole sentences: sizes, network, inference."""
