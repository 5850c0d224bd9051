"""How the minutes of a run are divided among its stages, by the speed of decoding."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moses_feature.runtime.errors import UsageError

MOST_TUNED, ITERATIONS = 1_500, 6
"""The held-out sentences that weights are tuned on, and how often they are translated at most."""
TUNING, LISTS, JUDGING = 0.15, 0.15, 0.05
"""Shares of a budget for tuning, for the lists to refine on, and for judging the column."""
FEWEST, FEWEST_ITERATIONS = 200, 3
"""The fewest sentences to tune on, and to translate into lists; and the fewest iterations."""
OPTIMISING = 0.02
"""Seconds that an iteration takes for a sentence besides decoding it."""
FEWEST_JUDGED = 100
"""The fewest sentences to judge on."""
NETWORK = 120.0
"""The least seconds for training and refining."""


@dataclass(frozen=True)
class RefiningPlan:
    """The work of the stages before the network.

    Attributes:
        tuned_on: sentences to tune on.
        tuning_seconds: the time for that; an iteration that has begun is finished.
        lists: sentences to translate into lists.
        judged: sentences to judge the column on; 0 for none.
    """

    tuned_on: int
    tuning_seconds: float
    lists: int
    judged: int


def plan(
    minutes: float | None, spent: float, seconds_each: float, sentences: int, judged: int
) -> RefiningPlan:
    """Divide a budget.

    Args:
        minutes: of all stages together; None for no limit.
        spent: seconds that are spent.
        seconds_each: of decoding a sentence.
        sentences: sentences to tune on and to make lists of, at most.
        judged: sentences to judge on, at most.

    Raises:
        UsageError: the budget is too small.
    """
    if minutes is None:
        return RefiningPlan(min(sentences, MOST_TUNED), math.inf, sentences, judged)
    seconds, each = 60 * minutes, seconds_each + OPTIMISING
    few = min(FEWEST, sentences)
    least = spent + few * (FEWEST_ITERATIONS * each + seconds_each) + NETWORK
    if seconds < least:
        raise UsageError(
            f"--minutes {minutes:g}: this text needs {math.ceil(least / 60)} minutes at least on "
            "this machine (its system is built; --resume continues)"
        )

    def within(share: float, of_each: float, most: int) -> int:
        return min(most, max(few, int(share * seconds / of_each)))

    judged = min(judged, int(JUDGING * seconds / (2 * seconds_each)))
    tuned_on = within(TUNING, ITERATIONS * each, min(sentences, MOST_TUNED))
    return RefiningPlan(
        tuned_on,
        max(TUNING * seconds, FEWEST_ITERATIONS * each * tuned_on),
        within(LISTS, seconds_each, sentences),
        judged if judged >= FEWEST_JUDGED else 0,
    )
