"""Metrics of translations, from statistics that add up over sentences."""

METRIC_NAMES = ("bleu", "wer", "ter", "chrf", "accuracy")
"""The names for users; see `moses_feature.metrics.metric`."""
