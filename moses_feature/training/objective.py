"""The interface between an objective (network, data, device) and the trainer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import Json
from moses_feature.training.ranks import local_index

DEVICE_TYPES = ("cpu", "cuda")


def choose_device(name: str) -> torch.device:
    """Return a device by name; `auto` is a GPU if there is one, `cuda` this process's GPU.

    Raises:
        UsageError: there is no such device on this machine.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(f"cuda:{local_index()}" if name == "cuda" else name)
        if device.type not in DEVICE_TYPES:
            raise UsageError(f"device {name!r} cannot be used: expected auto, cpu or cuda")
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"device {name!r} cannot be used: {reason}") from None
    return device


Rows = NDArray[np.integer]


@dataclass(frozen=True)
class Terms:
    """The terms of a batch in the loss.

    Attributes:
        rewards: (n,) the terms to maximise: log p of each word, natural logs, or the objective's
            value of each example.
        log_norms: (words,) log Z of the softmax at each word, if it is needed.
        penalty: () a term to minimise besides; not part of the held-out loss.
    """

    rewards: Tensor
    log_norms: Tensor | None = None
    penalty: Tensor | None = None


def frequency_loss(words: Integers, counts: Integers) -> float:
    """Return the mean loss of words by their frequencies, in natural logs.

    Args:
        words: (n,) the ids of the words.
        counts: (vocabulary,) how often each word occurs; one is added.
    """
    log_counts = np.log(counts + 1.0)
    return float(np.log((counts + 1.0).sum()) - log_counts[words].mean())


class Objective(Protocol):
    """A network and its training data.

    Attributes:
        network: in training mode, on its device.
        updates_per_epoch: the number of batches that contain every example once.
        evaluate_every: the default number of updates between evaluations.
        norm_penalty: factor of (log Z)^2 in the loss; 0 for none.
        loss_name: how the log calls the loss, or minus the loss.
        sign: 1 if the log shows the loss, -1 if minus the loss.
        evaluation_batch: how many held-out examples are evaluated together.
        starts_trained: whether the network is good for something before the first update.
        unit: in which the log gives its best value.
        frequency_loss: the held-out loss of a model that knows only how frequent words are; None
            if the loss is of something else.
    """

    network: nn.Module
    updates_per_epoch: int
    evaluate_every: int
    evaluation_batch: int
    norm_penalty: float
    loss_name: str
    sign: int
    unit: str
    starts_trained: bool
    frequency_loss: float | None

    @property
    def held_out(self) -> Rows:
        """The examples that measure the held-out loss."""

    def batch(self, update: int) -> Rows:
        """Return the examples of an update (counted from 0)."""

    def parts(self, rows: Rows) -> list[Rows]:
        """Return the parts of a batch that are to be learnt one after the other, for memory."""

    def terms(self, network: nn.Module, rows: Rows) -> Terms:
        """Return the terms of these examples in the loss."""

    def shown(self, held_out: dict[str, float]) -> str:
        """Return the held-out measurements as text for the log."""

    def save(self, directory: Path, training: Json) -> None:
        """Write the model with the record of its training."""

    def identity(self) -> Json:
        """Return the facts that must be the same for a run to be resumed, as JSON."""
