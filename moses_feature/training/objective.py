"""What a network learns, from what, and on which device; the trainer knows no more of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import Json
from moses_feature.training.ranks import local_index

DEVICE_TYPES = ("cpu", "cuda")


def choose_device(name: str) -> torch.device:
    """Return the device of that name; `auto` is a GPU where there is one, `cuda` this process's.

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
    """What a batch adds to the loss.

    Attributes:
        rewards: (n,) what is to be large: log p of each word, natural logs, or else what the
            objective says of each example.
        log_norms: (words,) log Z of the softmax at each word, where that is of interest.
        penalty: () what is to be small beside them; it is no part of the held-out loss.
    """

    rewards: Tensor
    log_norms: Tensor | None = None
    penalty: Tensor | None = None


class Objective(Protocol):
    """A network and what it is trained on.

    Attributes:
        network: in training mode, on the device that it is trained on.
        updates_per_epoch: batches that hold every example once.
        evaluate_every: updates between evaluations, unless the user says otherwise.
        norm_penalty: factor of (log Z)^2 in the loss; 0 for none.
        loss_name: how the log calls the loss, or minus the loss.
        sign: 1 if the log shows the loss, -1 if minus the loss.
        starts_trained: whether the network is good for something before the first update.
        unit: in which the log gives its best value.
    """

    network: nn.Module
    updates_per_epoch: int
    evaluate_every: int
    norm_penalty: float
    loss_name: str
    sign: int
    unit: str
    starts_trained: bool

    def batch(self, update: int) -> Rows:
        """Return the examples of an update (counted from 0)."""

    def held_out_batches(self) -> Iterator[Rows]:
        """Yield the examples that measure the held-out loss."""

    def terms(self, network: nn.Module, rows: Rows) -> Terms:
        """Return what these examples add to the loss."""

    def shown(self, held_out: dict[str, float]) -> str:
        """Return what was measured on the held-out examples as the log shows it."""

    def save(self, directory: Path, training: Json) -> None:
        """Write the model with what is to be known of its training."""

    def identity(self) -> Json:
        """Return what must be the same for a run to go on, as JSON."""
