"""Networks for phrase pairs, their vocabularies, and model directories."""
