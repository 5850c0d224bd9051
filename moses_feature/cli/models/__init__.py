"""Commands for models: train, refine, describe, score, sample, translate, export."""
