"""The joint language model (NNJM): p(word | target words before it, source words beside it)."""
