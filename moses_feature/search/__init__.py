"""RNNsearch: its training on sentence pairs, scores and translations."""
