"""What all networks share: vocabularies, model directories, cells, output layer, kernels."""
