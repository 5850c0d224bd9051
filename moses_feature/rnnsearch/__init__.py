"""RNNsearch, a network for whole sentences: training, scoring, translation."""
