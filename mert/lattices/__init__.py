"""Lattices of translations, and the weights with the best metric on them (Macherey et al. 2008)."""
