"""Networks of phrase pairs: the networks, their data, training, scores."""
