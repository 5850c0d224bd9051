"""How the minutes of choosing a system are divided, by the speed of decoding."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moses_feature.runtime.errors import UsageError

SYSTEMS, RUNS, ITERATIONS = 3, 3, 8
"""The systems that are tuned, the tuning runs of each, and the iterations of a run, at most; a
system with a new feature has one more, which is counted for all."""
POP_LIMITS = (1000, 500, 200)
"""Pop limits of the search, the best first; they are the last thing to be reduced."""
FEWEST_TUNED = 200
"""The fewest sentences to tune on, if there are so many."""
TUNING = 0.5
"""The share of the minutes for tuning and judging all systems."""
SCORING = 0.1
"""The share for scoring lists by a network, besides."""
LEAST_NETWORK = 10.0
"""Minutes; in fewer a network learns too little."""
OPTIMISING = 0.02
"""Seconds that an iteration takes for a sentence besides decoding it."""


@dataclass(frozen=True)
class ChoosingPlan:
    """The work after the first build.

    Attributes:
        pops: the pop limit of the search.
        tuned_on: sentences to tune on.
        network: minutes for training a network; 0 for none.
    """

    pops: int
    tuned_on: int
    network: float


def plan(minutes: float, spent: float, each: float, tuned_on: int, judged: int) -> ChoosingPlan:
    """Divide a budget.

    Args:
        minutes: of all together.
        spent: seconds that are spent.
        each: seconds of decoding a sentence with the first pop limit.
        tuned_on: sentences to tune on, at most.
        judged: sentences to judge on.

    Raises:
        UsageError: the budget is too small.
    """

    def seconds(pops: int, sentences: int) -> float:
        times = ITERATIONS + 1
        decoding = (times * sentences + judged) * each * pops / POP_LIMITS[0]
        return SYSTEMS * RUNS * (decoding + times * OPTIMISING * sentences)

    few = min(FEWEST_TUNED, tuned_on)
    for pops in POP_LIMITS:
        for sentences in dict.fromkeys((tuned_on, max(few, tuned_on // 2), few)):
            needed = seconds(pops, sentences)
            if needed <= min(TUNING * 60 * minutes, 60 * minutes - spent):
                left = (60 * minutes - spent - needed) / 60 - SCORING * minutes
                return ChoosingPlan(pops, sentences, left if left >= LEAST_NETWORK else 0.0)
    least = max(seconds(POP_LIMITS[-1], few) / TUNING, spent + seconds(POP_LIMITS[-1], few)) / 60
    raise UsageError(
        f"--minutes {minutes:g}: this text needs {math.ceil(least)} minutes at least on this "
        "machine (its system is built; the same command with more minutes continues)"
    )
