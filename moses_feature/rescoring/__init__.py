"""Adding features to n-best lists, and reranking them."""
