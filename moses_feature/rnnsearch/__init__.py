"""RNNsearch, the network of whole sentences: training, scores, translation, a decoder feature."""
