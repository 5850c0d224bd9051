"""How the networks of a scorer are computed on the CPU."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import torch

from moses_feature.models.sizes import Dtype

ROWS = 512
"""Rows of a block."""


@dataclass(frozen=True)
class Computation:
    """How the networks of a scorer are computed on the CPU.

    Attributes:
        dtype: of the large products; all else is float32.
        normalised: whether log Z is subtracted.
        workers: threads, each with a block of rows of its own.
        executor: that has them.
    """

    dtype: torch.dtype
    normalised: bool
    workers: int
    executor: Executor

    @classmethod
    def by(cls, threads: int | None, dtype: Dtype, normalised: bool) -> Computation:
        """Return that by some threads, None for as many as PyTorch uses; see `Scorer`."""
        workers = threads or torch.get_num_threads()
        executor = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        return cls(getattr(torch, dtype), normalised, workers, executor)
