"""Weights judged by sentences that they were not optimised on: two halves, both ways."""

from __future__ import annotations

import numpy as np

from mert.optimisers.candidates import Candidates
from mert.optimisers.choice import Optimizer
from mert.optimisers.space import SearchSpace, normalised
from moses_feature.arrays import Floats, Integers

HALVES = 2


def cross_optimised(
    candidates: Candidates, start: Floats, optimizer: Optimizer, seed: int
) -> tuple[Integers, Floats]:
    """Return BLEU statistics (sentences, 9) and weights (halves, features).

    Each half of the sentences is chosen from with the weights of the other half.
    """
    halves = [candidates.part(half, HALVES) for half in range(HALVES)]
    statistics = np.empty((len(candidates.offsets) - 1, candidates.statistics.shape[1]), np.int64)
    found = []
    for half, part in enumerate(halves):
        optimum = optimizer(halves[1 - half], SearchSpace.around(start), seed)
        rows = part.chosen(part.features @ optimum.weights)
        statistics[half::HALVES] = part.statistics[rows]
        found.append(normalised(optimum.weights))
    return statistics, np.array(found)
