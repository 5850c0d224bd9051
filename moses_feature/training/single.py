"""The run that trains one network on texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

import torch

from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, locked_directory
from moses_feature.training.objective import Objective
from moses_feature.training.settings import RunSettings
from moses_feature.training.trainer import RunControl, Trainer, holds_model, run_or_resume


class Learnt(Protocol):
    """The data of a network."""

    @property
    def provenance(self) -> Json:
        """The provenance of the data, for the model's config."""


L = TypeVar("L", bound=Learnt)


def train_single(
    texts: Sequence[str],
    read: Callable[[], L],
    objective_of: Callable[[L], Objective],
    settings: RunSettings,
    directory: Path,
    device: torch.device,
    control: RunControl,
) -> str:
    """Train a network and keep the best one in `directory`, with the checkpoint of the run.

    Args:
        texts: the files that are read.
        read: reads them; only the first process calls it.
        objective_of: makes the network and its objective.
        settings: how to train.
        directory: the model directory.
        device: the device to train on.
        control: stopping, resuming and reporting; see `RunControl`.

    Returns:
        The reason for stopping; `interrupted` if `control.stop` asked for it.

    Raises:
        UsageError: `directory` holds a model already and is not to be resumed, or a text is a
            stream.
        OutputError: another run is writing `directory`, or it cannot be written.
        MosesFeatureError: bad data, or nothing to resume.
    """

    def check() -> None:
        if STANDARD_STREAM in texts:
            raise UsageError("training reads from files: expected a file name, found -")
        if holds_model(directory) and not control.resume:
            raise UsageError(f"{directory} holds a model already: --resume goes on with it")

    ranks = control.ranks
    ranks.from_first(check)
    with ExitStack() as stack:
        lock = locked_directory(directory, "training")
        ranks.from_first(lambda: stack.enter_context(lock))
        learnt = ranks.from_first(read)
        objective = objective_of(learnt)
        trainer = Trainer(objective, settings, directory, device, learnt.provenance, ranks)
        return run_or_resume(trainer, directory, control.stop, control.report, ranks)
