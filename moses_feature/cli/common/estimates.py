"""`--estimate`: the real work for some seconds, and what follows for the whole."""

from __future__ import annotations

import logging
import math
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from moses_feature.cli.common.progress import duration
from moses_feature.training.settings import MORE_THAN_WARMUP, RunSettings

if TYPE_CHECKING:
    import torch

    from moses_feature.training.trainer import RunControl, TrainingState

D = TypeVar("D")
S = TypeVar("S", bound=RunSettings)
Train = Callable[[D, S, Path, "torch.device", "RunControl"], str]

SECONDS = 10.0
"""The time of trial training, without the first update, which includes preparations."""
GIGABYTE = 1e9


@dataclass(frozen=True)
class Trial:
    """A training run of some seconds.

    Attributes:
        seconds: before its first update, for reading.
        a_second: examples learnt from in a second; nan if there was no second update.
        epoch: the number of examples in an epoch.
        disk: bytes of the model and its checkpoint.
    """

    seconds: float
    a_second: float
    epoch: float
    disk: int


def try_training(
    train: Train[D, S], data: D, settings: S, directory: Path, device: torch.device
) -> Trial:
    """Train for some seconds in a new directory."""
    from moses_feature.training.trainer import RunControl

    short = replace(settings, updates=None, epochs=None, minutes=SECONDS / 60, warmup=0)
    short = replace(short, evaluate_every=10**9)
    states: list[tuple[int, float]] = []
    epoch = 0

    def note(state: TrainingState) -> None:
        nonlocal epoch
        states.append((state.update, state.seconds))
        epoch = state.updates_per_epoch

    begun = time.monotonic()
    with quiet():
        train(data, short, directory, device, RunControl(report=note))
    spent = time.monotonic() - begun
    (first, after_first), (last, ended) = states[0], states[-1]
    a_second = math.nan
    if last > first:
        a_second = settings.batch_size * (last - first) / (ended - after_first)
    disk = sum(file.stat().st_size for file in directory.iterdir())
    return Trial(max(0.0, spent - ended), a_second, settings.batch_size * epoch, disk)


def estimate_training(
    train: Train[D, S], data: D, settings: S, device: torch.device, examples: str
) -> None:
    """Print time, memory and disk of a training run on texts, which are read whole."""
    with tempfile.TemporaryDirectory(prefix="estimate-") as folder:
        trial = try_training(train, data, settings, Path(folder) / "model", device)
    speed = rate(trial, settings, trial.epoch, examples)
    click.echo(f"training: reading {duration(trial.seconds)}; {speed}")
    click.echo(f"memory: about {size(process_bytes())}; {on_disk(trial.disk)}")


def rate(trial: Trial, settings: RunSettings, epoch: float, examples: str) -> str:
    """Return speed, and time of an epoch of so many examples and of the budget, in words."""
    seconds = epoch / trial.a_second
    budgets = []
    if settings.minutes is not None:
        budgets.append(60 * settings.minutes)
    if settings.epochs is not None:
        budgets.append(settings.epochs * seconds)
    if settings.updates is not None:
        budgets.append(settings.updates * settings.batch_size / trial.a_second)
    whole = f"until {settings.patience} evaluations in a row bring nothing, which may be long"
    if budgets:
        whole = f"in all {duration(min(budgets))} at most"
        updates = min(budgets) * trial.a_second / settings.batch_size
        whole += f" ({updates:,.0f} updates)" if math.isfinite(updates) else ""
        if updates < settings.warmup:
            whole += f", within the warm-up of {settings.warmup}: {MORE_THAN_WARMUP}"
    return f"{trial.a_second:,.0f} {examples}/s, an epoch {duration(seconds)}; {whole}"


def on_disk(bytes_of_model: float) -> str:
    """Return the size of a model directory in words."""
    return f"the model and its checkpoint: {size(bytes_of_model)} on disk"


def process_bytes() -> int:
    """Return the peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def quiet() -> Iterator[None]:
    """Show only warnings of a trial."""
    ours = logging.getLogger("moses_feature")
    before = ours.level
    ours.setLevel(logging.WARNING)
    try:
        yield
    finally:
        ours.setLevel(before)


def size(number: float) -> str:
    """Return a number of bytes in words."""
    return f"{number / GIGABYTE:.2g} GB" if number >= GIGABYTE / 10 else f"{number / 1e6:.2g} MB"
