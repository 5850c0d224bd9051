"""The common parts of all networks: vocabularies, model files, cells, output layer, kernels."""
