"""Tensors whose memory is kept: fresh memory can cost more time than what is done with it."""

from __future__ import annotations

import torch
from torch import Tensor


class Arena:
    """Hands out float32 tensors by name, each time in the memory of the last one of that name."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory: dict[str, Tensor] = {}

    def tensor(self, name: str, rows: int, width: int) -> Tensor:
        """Return a tensor (rows, width) of anything; it lives until its name is asked for again."""
        memory = self._memory.get(name)
        if memory is None or len(memory) < rows * width:
            self._memory.pop(name, None)
            memory = self._memory[name] = torch.empty(rows * width, device=self._device)
        return memory[: rows * width].view(rows, width)
