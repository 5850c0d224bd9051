"""The run that trains a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import torch

from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, locked_directory
from moses_feature.training.objective import Objective
from moses_feature.training.settings import RunSettings
from moses_feature.training.trainer import RunControl, Trainer, holds_model

D = TypeVar("D")


def train_network(
    files: Sequence[str],
    read: Callable[[], tuple[D, Json]],
    begin: Callable[[D], tuple[Objective, RunSettings]],
    directory: Path,
    device: torch.device,
    control: RunControl,
) -> str:
    """Train a network; keep its best state, and the checkpoint of its run.

    Args:
        files: the files that are read.
        read: returns the data, and their provenance for the model's config; only the first process
            calls it.
        begin: makes the network and its objective, and says how to train.
        directory: the model directory, which is locked.
        device: the device to train on.
        control: stopping, resuming and reporting; see `RunControl`.

    Returns:
        The reason for stopping; `interrupted` if `control.stop` asked for it.

    Raises:
        UsageError: the directory holds a model already and is not to be resumed, or a file is a
            stream.
        OutputError: another run is writing `directory`, or it cannot be written.
        MosesFeatureError: bad data, or nothing to resume.
    """

    def check() -> None:
        if STANDARD_STREAM in files:
            raise UsageError("training reads from files: expected a file name, found -")
        if holds_model(directory) and not control.resume:
            raise UsageError(f"{directory} holds a model already: --resume continues it")

    ranks = control.ranks
    ranks.from_first(check)
    with ExitStack() as stack:
        lock = locked_directory(directory, "training")
        ranks.from_first(lambda: stack.enter_context(lock))
        data, provenance = ranks.from_first(read)
        return Trainer(*begin(data), directory, device, provenance, control).run()
