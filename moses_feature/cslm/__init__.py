"""The feed-forward neural language model (CSLM): training, scores, NPLM's format."""
