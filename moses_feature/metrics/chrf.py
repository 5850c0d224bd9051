"""chrF (Popović 2015): F-score of character n-grams, recall counting twice as much.

The statistics of a hypothesis are eighteen counts: matches and n-grams for n = 1..6, as those of
BLEU, then n-grams of the reference for n = 6..1. Spaces are left out. It is sacreBLEU's chrF2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moses_feature.metrics.bleu import matches
from moses_feature.metrics.metric import Metric, Tokens, formula
from moses_feature.runtime.arrays import Floats, Integers

MAX_N = 6
BETA = 2.0
STATISTICS = 3 * MAX_N


class ChrfReferences:
    """The reference translations of one sentence; of several, the best one counts."""

    def __init__(self, references: Sequence[Tokens]) -> None:
        self._references = [_letters(reference) for reference in references]

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return the counts (n, 18) of n hypotheses."""
        letters = [_letters(hypothesis) for hypothesis in hypotheses]
        of_each = [_statistics(letters, reference) for reference in self._references]
        if len(of_each) == 1:
            return of_each[0]
        chosen = np.argmax([CHRF.qualities(of) for of in of_each], axis=0)
        best: Integers = np.stack(of_each)[chosen, np.arange(len(hypotheses))]
        return best


def _letters(text: Tokens) -> Integers:
    joined = b"".join(text).decode("utf-8", errors="surrogateescape")
    return np.array([ord(letter) + 1 for letter in joined], np.int64)


def _statistics(texts: Sequence[Integers], reference: Integers) -> Integers:
    found = np.empty((len(texts), STATISTICS), np.int64)
    found[:, : 2 * MAX_N] = matches(texts, [reference], MAX_N)
    found[:, 2 * MAX_N :] = np.maximum(len(reference) - np.arange(MAX_N)[::-1], 0)
    found[:, 2 * len(reference) + 1 : 2 * MAX_N : 2] = 0  # longer than the reference: not counted
    return found


@formula
def _chrf(statistics: Floats) -> float:
    precision = recall = 0.0
    orders = 0
    for n in range(MAX_N):
        matched, written = statistics[2 * n], statistics[2 * n + 1]
        wanted = statistics[STATISTICS - 1 - n]
        if written > 0.0 and wanted > 0.0:
            orders += 1
            precision += matched / written
            recall += matched / wanted
    if precision + recall <= 0.0:
        return 0.0
    precision, recall = precision / orders, recall / orders
    squared = BETA * BETA
    return (1.0 + squared) * precision * recall / (squared * precision + recall)


CHRF = Metric(
    "chrf",
    "chrF",
    ChrfReferences,
    (1.0,) * STATISTICS,
    _chrf,
    is_error=False,
    describe="case:mixed|eff:yes|nc:6|nw:0|space:no",
)
