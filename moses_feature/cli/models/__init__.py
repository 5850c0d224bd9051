"""Commands for models: train, refine, look at, score with, translate with, export."""
