"""How the minutes of choosing a system are divided, by the speed of decoding."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moses_feature.runtime.errors import UsageError

RUNS, ITERATIONS = 3, 8
"""The tuning runs of a system, and the iterations of a run, at most; a system with a new feature
has one more, which is counted for all."""
POP_LIMITS = (1000, 500, 200)
"""Pop limits of the search, the best first."""
MOST_TUNED, FEWEST_TUNED = 1000, 200
"""Sentences to tune on, if there are so many. A lower pop limit is tried before fewer sentences
than the first number; a budget that is too short for the second is refused."""
TUNING = 0.6
"""The share of the minutes for tuning and judging all systems, at most."""
SCORING = 0.1
"""The share for scoring lists by a network, besides."""
LEAST_NETWORK = 10.0
"""Minutes; in fewer a network learns too little, and none is trained."""
OPTIMISING = 0.005
"""Seconds that an iteration takes for a sentence besides decoding it."""


@dataclass(frozen=True)
class ChoosingPlan:
    """The work after the first build.

    Attributes:
        pops: the pop limit of the search.
        tuned_on: sentences to tune on.
        network: minutes for training a network, at least.
        rescoring: minutes for scoring lists by it, and tuning and judging with it.
    """

    pops: int
    tuned_on: int
    network: float
    rescoring: float


def plan(
    minutes: float, spent: float, each: float, tuned_on: int, judged: int, systems: int
) -> ChoosingPlan:
    """Divide a budget.

    Args:
        minutes: of all together.
        spent: seconds that are spent.
        each: seconds of decoding a sentence with the first pop limit.
        tuned_on: sentences to tune on, at most.
        judged: sentences to judge on.
        systems: that are tuned.

    Raises:
        UsageError: the budget is too small.
    """
    budget = 60 * minutes
    allowed = min(TUNING * budget, budget - spent)
    runs, times = systems * RUNS, ITERATIONS + 1
    most, few = min(MOST_TUNED, tuned_on), min(FEWEST_TUNED, tuned_on)
    for pops in POP_LIMITS:
        decoding = each * pops / POP_LIMITS[0]
        judging, tuning = runs * judged * decoding, runs * times * (decoding + OPTIMISING)
        sentences = min(most, int((allowed - judging) / tuning))
        if sentences >= (few if pops == POP_LIMITS[-1] else most):
            of_all = judging + tuning * sentences
            left = (budget - spent - of_all) / 60 - SCORING * minutes
            rescoring = of_all / systems / 60 + SCORING * minutes
            return ChoosingPlan(pops, sentences, max(left, 0.0), rescoring)
    needed = judging + tuning * few
    least = max(needed / TUNING, spent + needed) / 60
    raise UsageError(
        f"--minutes {minutes:g}: this text needs {math.ceil(least)} minutes at least on this "
        "machine (its system is built; the same command with more minutes continues)"
    )
