"""All that the searches of a tuning run have found, and the weights that are the best on it."""
