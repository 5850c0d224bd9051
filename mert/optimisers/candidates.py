"""The hypotheses to choose from, the search space of the weights, and an optimiser's result."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from moses_feature.metrics.bleu import BLEU
from moses_feature.metrics.metric import Metric
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled


@dataclass(frozen=True)
class SearchSpace:
    """The search space of the weights.

    Attributes:
        start: (d,) start weights of the first search.
        draw_lowest, draw_highest: (d,) limits between which restarts are drawn uniformly.
    """

    start: Floats
    draw_lowest: Floats
    draw_highest: Floats

    @classmethod
    def around(cls, start: Floats) -> SearchSpace:
        """Return a space whose restarts are drawn from [0, 1]."""
        size = len(start)
        return cls(np.asarray(start, dtype=np.float64), np.zeros(size), np.ones(size))


@dataclass(frozen=True)
class Optimum:
    """The result of an optimiser.

    Attributes:
        weights: (d,), their absolute values summing to 1.
        quality: 0 to 1, on the candidates; higher is better.
        start_quality: the quality of the start weights.
        reason: the reason for stopping.
        quality_of_restarts: of each restart, the first one from the start weights.
    """

    weights: Floats
    quality: float
    start_quality: float
    reason: str
    quality_of_restarts: list[float] = field(default_factory=list)


def normalised(weights: Sequence[float] | Floats) -> Floats:
    """Return weights (d,) whose absolute values sum to 1, as Moses reports them."""
    array = np.asarray(weights, dtype=np.float64)
    total = np.abs(array).sum()
    return array / total if total else array


@dataclass(frozen=True)
class Candidates:
    """All hypotheses of all sentences, sentence after sentence.

    Attributes:
        features: (n, d) feature values, natural logs or minus counts.
        statistics: (n, width) of the metric; see `moses_feature.metrics.metric`.
        offsets: (sentences + 1,) where the hypotheses of each sentence begin, and the end.
        names: (d,) names of the features.
        metric: what the statistics are of.
    """

    features: Floats
    statistics: Integers
    offsets: Integers
    names: tuple[str, ...]
    metric: Metric = BLEU

    def chosen(self, scores: Floats) -> Integers:
        """Return the best hypothesis of each sentence by scores (n,), the first of equal ones."""
        rows: Integers = _chosen(scores, self.offsets)
        return rows

    def closest_to_references(self) -> Integers:
        """Return the hypothesis of each sentence that has the best metric by itself."""
        return self.chosen(self.metric.of_sentences(self.statistics))

    def quality_of(self, scores: Floats) -> float:
        """Return the quality, 0 to 1, of the hypotheses chosen by scores (n,)."""
        return self.quality_of_rows(self.chosen(scores))

    def quality_of_rows(self, rows: Integers) -> float:
        """Return the quality, 0 to 1, of one hypothesis (sentences,) of each sentence."""
        return self.metric.quality(self.statistics[rows].sum(axis=0))

    def quality(self, weights: Floats) -> float:
        """Return the quality, 0 to 1, of the hypotheses chosen by weights (d,)."""
        return self.quality_of(self.features @ weights)

    def spread(self) -> Floats:
        """Return (d,): the largest value of a feature less its smallest, mean over sentences."""
        starts = self.offsets[:-1]
        largest = np.maximum.reduceat(self.features, starts)
        spread: Floats = (largest - np.minimum.reduceat(self.features, starts)).mean(axis=0)
        return spread

    def part(self, number: int, parts: int) -> Candidates:
        """Return the candidates of every `parts`-th sentence, from sentence `number` on."""
        bounds = list(itertools.pairwise(self.offsets.tolist()))[number::parts]
        rows = np.concatenate([np.arange(first, last) for first, last in bounds])
        offsets = np.cumsum([0, *(last - first for first, last in bounds)])
        return self._of(rows, offsets)

    def distinct(self) -> Candidates:
        """Return the candidates without those that equal an earlier one in all numbers."""
        sentence = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        rows = np.column_stack([sentence, self.features, self.statistics])
        _, first = np.unique(rows, axis=0, return_index=True)
        first.sort()
        counts = np.bincount(sentence[first], minlength=len(self.offsets) - 1)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return self._of(first, offsets)

    def _of(self, rows: Integers, offsets: Integers) -> Candidates:
        """Return some of the hypotheses."""
        features, statistics = self.features[rows], self.statistics[rows]
        return replace(self, features=features, statistics=statistics, offsets=offsets)


@compiled
def _chosen(scores: Floats, offsets: Integers) -> Integers:
    """Return the row with the best score of each sentence, the first of equal ones."""
    rows = np.empty(len(offsets) - 1, np.int64)
    for sentence in range(len(rows)):
        best = offsets[sentence]
        for row in range(best + 1, offsets[sentence + 1]):
            if scores[row] > scores[best]:
                best = row
        rows[sentence] = best
    return rows
