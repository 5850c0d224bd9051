"""The run that trains a network, or several in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import torch

from moses_feature.networks.files import is_cross_fitted
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, locked_directory
from moses_feature.training.objective import Objective
from moses_feature.training.settings import RunSettings
from moses_feature.training.trainer import (
    INTERRUPTED,
    RunControl,
    Trainer,
    holds_model,
)

D = TypeVar("D")


def train_networks(
    files: Sequence[str],
    networks: Mapping[Path, Callable[[], tuple[D, Json]]],
    objective_of: Callable[[D], Objective],
    settings: RunSettings,
    directory: Path,
    device: torch.device,
    control: RunControl,
    prepare: Callable[[], None] = lambda: None,
) -> str:
    """Train networks in turn; keep the best state of each, and the checkpoint of its run.

    Args:
        files: the files that are read.
        networks: for the model directory of each network, what returns its data, and their
            provenance for the model's config; only the first process calls it.
        objective_of: makes a network and its objective.
        settings: how to train.
        directory: the directory of the run, which is locked.
        device: the device to train on.
        control: stopping, resuming and reporting; see `RunControl`.
        prepare: called by the first process when the directory is locked.

    Returns:
        The reason for stopping; `interrupted` if `control.stop` asked for it.

    Raises:
        UsageError: a directory holds a model already and is not to be resumed, or a file is a
            stream.
        OutputError: another run is writing `directory`, or it cannot be written.
        MosesFeatureError: bad data, or nothing to resume.
    """

    def check() -> None:
        if STANDARD_STREAM in files:
            raise UsageError("training reads from files: expected a file name, found -")
        if len(networks) == 1 and is_cross_fitted(directory):
            raise UsageError(
                f"{directory} holds a network for each fold: name another directory, or one of them"
            )
        if any(map(holds_model, networks)) and not control.resume:
            raise UsageError(f"{directory} holds a model already: --resume goes on with it")

    ranks = control.ranks
    ranks.from_first(check)
    reason = INTERRUPTED
    with ExitStack() as stack:
        lock = locked_directory(directory, "training")
        ranks.from_first(lambda: stack.enter_context(lock))
        ranks.from_first(prepare)
        for model, read in networks.items():
            data, provenance = ranks.from_first(read)
            of_run = settings, model, device, provenance, control
            reason = Trainer(objective_of(data), *of_run).run()
            if reason == INTERRUPTED:
                break
    return reason
