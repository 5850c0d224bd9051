"""The embedded decoder: phrase-based search for the systems that train-model.perl makes."""
