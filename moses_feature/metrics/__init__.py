"""Metrics of translations, from statistics that add up over sentences."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moses_feature.metrics.metric import Metric

METRICS = {
    "bleu": "moses_feature.metrics.bleu:BLEU",
    "wer": "moses_feature.metrics.error_rates:WER",
    "ter": "moses_feature.metrics.error_rates:TER",
    "chrf": "moses_feature.metrics.chrf:CHRF",
    "accuracy": "moses_feature.metrics.error_rates:ACCURACY",
}
"""Where each metric is defined, by its name for users. A new metric is one module and one line."""


def metric_of(name: str) -> Metric:
    """Return a metric by its name.

    Raises:
        KeyError: there is no such metric.
    """
    module, _, attribute = METRICS[name].partition(":")
    metric: Metric = getattr(import_module(module), attribute)
    return metric
