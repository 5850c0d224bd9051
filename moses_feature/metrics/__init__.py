"""Metrics of translations, from statistics that add up over sentences."""

METRIC_NAMES = ("bleu", "wer", "ter", "chrf", "accuracy")
"""As users give them; `moses_feature.metrics.metric` says what they are."""
