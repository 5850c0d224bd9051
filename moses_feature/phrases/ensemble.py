"""Several networks as one: the mean of what they take each word for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from moses_feature.phrases.packing import Packed
from moses_feature.phrases.scorer import Scorer, Scores


class AnyScorer(Protocol):
    """Scores pairs that were packed for it.

    Attributes:
        helpers: how many processes that pack pairs can keep it busy.
    """

    @property
    def helpers(self) -> int:
        """See above."""

    def score_packed(self, packed: Packed) -> Scores:
        """Score phrase pairs."""


class Ensemble:
    """Networks with the same shortlists; p of a word is the mean of theirs.

    Args:
        scorers: two or more.
    """

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        self._scorers = scorers
        self.helpers = scorers[0].helpers

    def score_packed(self, packed: Packed) -> Scores:
        """Score phrase pairs that one of the packers has packed; see `Scorer`."""
        found = [scorer.score_packed(packed) for scorer in self._scorers]
        words = np.logaddexp.reduce([scores.word_log_probs for scores in found])
        words -= math.log(len(found))
        first = found[0]
        log_probs = np.add.reduceat(words, first.offsets[:-1]) if len(first.log_probs) else words
        return replace(first, word_log_probs=words, log_probs=log_probs)
