"""Where a network is: a CPU or a GPU."""

from __future__ import annotations

import torch

from moses_feature.errors import UsageError
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
