"""A trained network made better at its task: the n-best lists of a decoder, and their BLEU."""
