"""The hypotheses that weights choose among, where weights may be, and what an optimiser found."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moses_feature.metrics.metric import corpus_quality, sentence_quality
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiler


@dataclass(frozen=True)
class SearchSpace:
    """Where weights may be.

    Attributes:
        start: (d,) where the first search begins.
        draw_lowest, draw_highest: (d,) between which restarts are drawn, uniformly.
        lowest, highest: (d,) bounds of the weights, held after each step, before normalisation.
        fixed: (d,) bool, 1 for weights that keep their share of the start weights.
    """

    start: Floats
    draw_lowest: Floats
    draw_highest: Floats
    lowest: Floats
    highest: Floats
    fixed: NDArray[np.bool_]

    @classmethod
    def around(cls, start: Floats) -> SearchSpace:
        """Return a space without bounds; restarts are drawn from [0, 1]."""
        size = len(start)
        return cls(
            np.asarray(start, dtype=np.float64),
            np.zeros(size),
            np.ones(size),
            np.full(size, -np.inf),
            np.full(size, np.inf),
            np.zeros(size, dtype=np.bool_),
        )


@dataclass(frozen=True)
class Optimum:
    """What an optimiser found.

    Attributes:
        weights: (d,), their absolute values summing to 1 unless some are fixed.
        quality: 0 to 1, on the candidates; more is better.
        start_quality: at the start weights.
        reason: why it stopped.
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
        names: (d,) of the features.
    """

    features: Floats
    statistics: Integers
    offsets: Integers
    names: tuple[str, ...]

    def chosen(self, scores: Floats) -> Integers:
        """Return the best hypothesis of each sentence by scores (n,); of equal ones the first."""
        rows: Integers = _chosen(scores, self.offsets)
        return rows

    def closest_to_references(self) -> Integers:
        """Return the hypothesis of each sentence with the best metric by itself."""
        return self.chosen(sentence_quality(self.statistics))

    def quality_of(self, scores: Floats) -> float:
        """Return the quality, 0 to 1, of the hypotheses that scores (n,) choose."""
        return self.quality_of_rows(self.chosen(scores))

    def quality_of_rows(self, rows: Integers) -> float:
        """Return the quality, 0 to 1, of one hypothesis (sentences,) of each sentence."""
        return corpus_quality(self.statistics[rows].sum(axis=0))

    def quality(self, weights: Floats) -> float:
        """Return the quality, 0 to 1, of the hypotheses that weights (d,) choose."""
        return self.quality_of(self.features @ weights)

    def part(self, number: int, parts: int) -> Candidates:
        """Return the candidates of every `parts`-th sentence, from a number on."""
        bounds = list(itertools.pairwise(self.offsets.tolist()))[number::parts]
        rows = np.concatenate([np.arange(first, last) for first, last in bounds])
        offsets = np.cumsum([0, *(last - first for first, last in bounds)])
        return Candidates(self.features[rows], self.statistics[rows], offsets, self.names)

    def distinct(self) -> Candidates:
        """Return the candidates without those that agree with an earlier one in all numbers."""
        sentence = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        rows = np.column_stack([sentence, self.features, self.statistics])
        _, first = np.unique(rows, axis=0, return_index=True)
        first.sort()
        counts = np.bincount(sentence[first], minlength=len(self.offsets) - 1)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return Candidates(self.features[first], self.statistics[first], offsets, self.names)


@compiler(nogil=True)
def _chosen(scores: Floats, offsets: Integers) -> Integers:
    """Return the row with the best score of each sentence; of equal ones the first."""
    rows = np.empty(len(offsets) - 1, np.int64)
    for sentence in range(len(rows)):
        best = offsets[sentence]
        for row in range(best + 1, offsets[sentence + 1]):
            if scores[row] > scores[best]:
                best = row
        rows[sentence] = best
    return rows
