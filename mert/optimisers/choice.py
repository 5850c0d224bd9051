"""The optimisers by name, behind one interface."""

from __future__ import annotations

from collections.abc import Callable

from mert.optimisers.candidates import Candidates
from mert.optimisers.mert import RANDOM_DIRECTIONS, mert
from mert.optimisers.mira import mira
from mert.optimisers.pro import pro
from mert.optimisers.space import Optimum, SearchSpace
from moses_feature.errors import UsageError

Optimizer = Callable[[Candidates, SearchSpace, int], Optimum]
"""Takes candidates, where weights may be, and a seed."""

OPTIMIZERS = ("mert", "mira", "pro")


def optimizer(
    name: str, restarts: int = 20, random_directions: int = RANDOM_DIRECTIONS
) -> Optimizer:
    """Return the optimiser of that name; the other arguments are for `mert`.

    Raises:
        UsageError: there is none; lists the names.
    """
    if name == "mert":
        return lambda candidates, space, seed: mert(
            candidates, space, restarts, random_directions, seed
        )
    if name == "mira":
        return mira
    if name == "pro":
        return pro
    raise UsageError(f"unknown optimizer {name!r}: expected one of {', '.join(OPTIMIZERS)}")
