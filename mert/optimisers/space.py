"""Where weights may be, and what an optimiser found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moses_feature.arrays import Floats


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
