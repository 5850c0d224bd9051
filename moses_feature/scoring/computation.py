"""Where and how the networks of a scorer are computed."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import torch

from moses_feature.models.sizes import Dtype

BLOCK_ROWS = {"cpu": 512, "cuda": 2048}
WORDS_TOGETHER = {"cpu": 1024, "cuda": 4096}


@dataclass(frozen=True)
class Computation:
    """Where and how the networks of a scorer are computed.

    Attributes:
        device: of the products.
        dtype: of the large ones; all else is float32.
        normalised: whether log Z is subtracted.
        workers: threads on a CPU, each with a block of rows of its own.
        executor: that has them.
    """

    device: torch.device
    dtype: torch.dtype
    normalised: bool
    workers: int
    executor: Executor

    @classmethod
    def on(
        cls, device: torch.device, dtype: Dtype, threads: int | None, normalised: bool
    ) -> Computation:
        """Return that on a device; see `Scorer`."""
        workers = threads or torch.get_num_threads() if device.type == "cpu" else 1
        executor = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        return cls(device, getattr(torch, dtype), normalised, workers, executor)

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return BLOCK_ROWS[self.device.type]

    @property
    def words(self) -> int:
        """How many words' logits are computed together."""
        return WORDS_TOGETHER[self.device.type]
