"""The joint language model (NNJM): a target word after target words and beside source words."""
