"""The training loop of all networks: trainer, objectives, checkpoints, several processes."""
