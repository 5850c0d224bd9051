"""From phrase tables to a trained network; the trainer serves every network."""
