"""What a training run asks and tells while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moses_feature.training.ranks import ALONE, Ranks
from moses_feature.training.trainer import TrainingState


@dataclass(frozen=True)
class RunControl:
    """What a training run asks and tells.

    Attributes:
        resume: go on from the checkpoint in the model directory; start, if it is empty.
        command: what the user typed, for the model's provenance.
        stop: asked after each update whether to stop.
        report: told the state of the run after each update.
        ranks: the processes that train together; the first one reads and writes.
    """

    resume: bool = False
    command: str = ""
    stop: Callable[[], bool] = lambda: False
    report: Callable[[TrainingState], None] = lambda _: None
    ranks: Ranks = ALONE


NO_CONTROL = RunControl()
