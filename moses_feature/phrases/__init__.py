"""Networks for phrase pairs: architectures, data, training, scoring."""
