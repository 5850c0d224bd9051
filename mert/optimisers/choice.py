"""The optimisers by name, and cross-validation of the weights on two halves of the sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mert.optimisers.candidates import Candidates, Optimum, SearchSpace, normalised
from mert.optimisers.mert import mert
from mert.optimisers.mira import mira
from mert.settings import TuningSettings
from moses_feature.runtime.arrays import Floats, Integers

HALVES = 2


def cross_optimised(
    candidates: Candidates, start: Floats, optimizer: Optimizer, seed: int
) -> tuple[Integers, Floats]:
    """Return BLEU statistics (sentences, 9) and weights (halves, features).

    Translations of each half are chosen with weights optimised on the other half.
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


Optimizer = Callable[[Candidates, SearchSpace, int], Optimum]
"""Takes candidates, a search space, and a seed."""


def optimizer(
    name: str,
    restarts: int = TuningSettings.restarts,
    random_directions: int = TuningSettings.random_directions,
) -> Optimizer:
    """Return the optimiser of that name; the other arguments are for `mert`."""
    known: dict[str, Optimizer] = {
        "mert": lambda candidates, space, seed: mert(
            candidates, space, restarts, random_directions, seed
        ),
        "mira": mira,
    }
    return known[name]
