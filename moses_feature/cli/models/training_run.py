"""The common parts of the training commands: progress, Ctrl-C, the processes of torchrun."""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from moses_feature.cli.common.command import command_line
from moses_feature.cli.common.progress import Progress, TrainingReporter
from moses_feature.cli.common.start import INTERRUPTED, TERMINATED
from moses_feature.networks.files import CONFIG
from moses_feature.runtime.environment import multiplies_bfloat16
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.training.settings import RunSettings

if TYPE_CHECKING:
    import torch

    from moses_feature.training.trainer import RunControl


logger = logging.getLogger(__name__)

D = TypeVar("D")
S = TypeVar("S", bound=RunSettings)

ENDING = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and the signal that batch systems send before they kill a job."""
SECONDS_FOR_THE_FIRST = 5.0
WITHOUT_BFLOAT16 = ("DEFAULT", "AVX2")
"""PyTorch's names of x86 processors without products of bfloat16 numbers."""


def train_and_show(
    train: Callable[[D, S, Path, torch.device, RunControl], str],
    data: D,
    settings: S,
    directory: Path,
    device: torch.device,
    resume: bool,
    examples: str,
    plan: bool = False,
    again: str = "the same command with --resume",
) -> None:
    """Train a network in a model directory, show the progress, and end in order on a signal.

    Of the processes that torchrun started, all but the first one are silent.

    Args:
        train: the function that trains.
        data: the data to train on.
        settings: the settings of the run.
        directory: the model directory.
        device: the device of this process.
        resume: continue from the checkpoint in the directory.
        examples: the name of the examples of an update.
        plan: stop when the plan has been printed, and keep nothing.
        again: what continues an interrupted run.
    """
    from moses_feature.training.ranks import joined
    from moses_feature.training.trainer import RunControl

    if plan:
        with tempfile.TemporaryDirectory(prefix="plan-") as folder, Progress(has_end=False) as bar:
            report = TrainingReporter(bar, settings, examples)
            control = RunControl(stop=lambda: report.planned, report=report)
            train(data, settings, Path(folder) / "model", device, control)
        return
    with joined(device) as ranks:
        control = RunControl(resume, command_line(), ranks=ranks)
        if not ranks.first:
            with _in_silence():
                train(data, settings, directory, device, control)
            return
        if ranks.count > 1:
            logger.info("%d processes train together; this one on %s", ranks.count, device)
        _advise_on_dtype(settings, device)
        has_end = settings.updates is not None or settings.minutes is not None
        with finish_on_interrupt() as came, Progress(has_end) as progress:
            report = TrainingReporter(progress, settings, examples)
            control = replace(control, stop=lambda: came() > 0, report=report)
            train(data, settings, directory, device, control)
    if came():
        yet = "" if (directory / CONFIG).exists() else ", no model yet"
        click.echo(f"saved in {directory}{yet}; {again} continues", err=True)
        sys.exit(INTERRUPTED if came() == signal.SIGINT else TERMINATED)


def _advise_on_dtype(settings: RunSettings, device: torch.device) -> None:
    """Warn if the processor has to emulate bfloat16; say if a long run could make use of it."""
    import torch

    if device.type != "cpu":
        return
    capability = torch.backends.cpu.get_cpu_capability()
    if settings.dtype == "bfloat16" and capability in WITHOUT_BFLOAT16:
        logger.warning(
            "this processor has no bfloat16 (%s): --dtype float32 may be ten times as fast",
            capability,
        )
    elif settings.dtype == "float32" and settings.updates is None and multiplies_bfloat16():
        logger.info("this processor has bfloat16: --dtype bfloat16 would be twice as fast")


@contextmanager
def _in_silence() -> Iterator[None]:
    """Leave all messages and errors to the first process.

    torchrun ends all processes as soon as one has failed: the first one must be that one.
    """
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    logging.disable(logging.WARNING)
    try:
        yield
    except MosesFeatureError as error:
        time.sleep(SECONDS_FOR_THE_FIRST)
        raise SystemExit(error.exit_code) from None


@contextmanager
def finish_on_interrupt() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the number of the signal that came, 0 for none.

    It takes Ctrl-C and SIGTERM; a second one kills.
    """
    came = 0

    def note(number: int, _: object) -> None:
        nonlocal came
        came = number
        for each, handler in before.items():
            signal.signal(each, handler)
        click.echo("\ninterrupted: finishing the update (again to stop at once)", err=True)

    before = {number: signal.signal(number, note) for number in ENDING}
    try:
        yield lambda: came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
