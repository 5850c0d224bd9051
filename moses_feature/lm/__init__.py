"""The feed-forward neural language model (CSLM): its training, and its scores."""
