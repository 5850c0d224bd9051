"""What the commands that train share: progress, Ctrl-C, and the processes of torchrun."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import torch

from moses_feature.cli.progress import Progress, TrainingReporter
from moses_feature.cli.start import INTERRUPTED
from moses_feature.errors import MosesFeatureError
from moses_feature.training.ranks import Ranks, joined
from moses_feature.training.settings import RunSettings
from moses_feature.training.trainer import TrainingState

logger = logging.getLogger(__name__)

ENDING = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what batch systems send some time before they kill."""
SECONDS_FOR_THE_FIRST = 5.0


@dataclass(frozen=True)
class RunControl:
    """What a training run asks and tells.

    Attributes:
        ranks: the processes that train together.
        stop: asked after each update whether to stop.
        report: told the state after each update.
    """

    ranks: Ranks
    stop: Callable[[], bool] = lambda: False
    report: Callable[[TrainingState], None] = lambda _: None


@contextmanager
def training_run(
    directory: Path, settings: RunSettings, device: torch.device, examples: str
) -> Iterator[RunControl]:
    """Show the progress of a run, and end it in order on Ctrl-C or SIGTERM, with exit code 130.

    Of the processes that torchrun started, all but the first one are silent.

    Args:
        directory: of the model.
        settings: of the run.
        device: of this process.
        examples: what an update has many of.
    """
    with joined(device) as ranks:
        if not ranks.first:
            with _in_silence():
                yield RunControl(ranks)
            return
        if ranks.count > 1:
            logger.info("%d processes train together; this one on %s", ranks.count, device)
        has_end = settings.updates is not None or settings.minutes is not None
        with finish_on_interrupt() as interrupted, Progress(has_end) as progress:
            yield RunControl(ranks, interrupted, TrainingReporter(progress, settings, examples))
    if interrupted():
        click.echo(f"saved in {directory}; the same command with --resume goes on", err=True)
        sys.exit(INTERRUPTED)


@contextmanager
def _in_silence() -> Iterator[None]:
    """Leave it to the first process to say what is done and what is wrong.

    torchrun ends all processes as soon as one has failed, so that the first one must be it.
    """
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    logging.getLogger().setLevel(logging.ERROR)
    try:
        yield
    except MosesFeatureError as error:
        time.sleep(SECONDS_FOR_THE_FIRST)
        raise SystemExit(error.exit_code) from None


@contextmanager
def finish_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether there was a Ctrl-C or SIGTERM; a second one kills."""
    pressed = False

    def press(*_: object) -> None:
        nonlocal pressed
        pressed = True
        for number, handler in before.items():
            signal.signal(number, handler)
        click.echo("\ninterrupted: finishing the update (again to stop at once)", err=True)

    before = {number: signal.signal(number, press) for number in ENDING}
    try:
        yield lambda: pressed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
