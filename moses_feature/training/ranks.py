"""The processes that train one network together: those started by torchrun, or this one alone."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from moses_feature.runtime.errors import LostProcessError, MosesFeatureError

T = TypeVar("T")
Rows = NDArray[np.integer]

PATIENCE = timedelta(days=1)
"""How long processes wait for one that reads a large table; torchrun notices dead processes."""
PIECE = 1 << 26
"""Bytes that are sent at once."""
FIRST = 0


@dataclass(frozen=True)
class Ranks:
    """This process among `count` that train one network.

    All processes call the same methods in the same order. Only the first one reads and writes
    files: the others need neither the tables nor the model directory.

    Attributes:
        index: the number of this process, from 0.
        count: the number of processes.
    """

    index: int = FIRST
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that reads and writes."""
        return self.index == FIRST

    def share(self, rows: Rows) -> tuple[Rows, float]:
        """Return this process's rows of a batch, and their weight: 1.

        A process without a row of its own gets one of another process, with weight 0.
        """
        mine = rows[self.index :: self.count]
        return (mine, 1.0) if len(mine) else (rows[:1], 0.0)

    def parallel(self, network: nn.Module) -> nn.Module:
        """Return the network wrapped so that gradients are the means over all processes."""
        if self.count == 1:
            return network
        return DistributedDataParallel(network, gradient_as_bucket_view=True)

    def apart(self, parallel: nn.Module) -> AbstractContextManager[None]:
        """Return a context in which gradients are added up, and not yet those of all processes."""
        if isinstance(parallel, DistributedDataParallel):
            return parallel.no_sync()
        return nullcontext()

    def sums(self, values: Sequence[float]) -> list[float]:
        """Return the sums over all processes, the same bits in each."""
        if self.count == 1:
            return list(values)
        mine = torch.tensor(values, dtype=torch.float64)
        every = [torch.empty_like(mine) for _ in range(self.count)]
        torch.distributed.all_gather(every, mine)
        sums: list[float] = torch.stack(every).sum(dim=0).tolist()
        return sums

    def from_first(self, make: Callable[[], T]) -> T:
        """Return the result of `make`, which only the first process calls.

        Raises:
            LostProcessError: `make` failed in the first process.
        """
        if self.count == 1:
            return make()
        if not self.first:
            size = self._broadcast_size(None)
            if size is None:
                raise LostProcessError("the first process has failed")
            content = np.empty(size, dtype=np.uint8)
            self._broadcast(content)
            received: T = pickle.loads(content.data)  # noqa: S301  # our own
            return received
        try:
            value = make()
        except MosesFeatureError:
            self._broadcast_size(None)
            raise
        content = np.frombuffer(pickle.dumps(value), dtype=np.uint8)
        self._broadcast_size(len(content))
        self._broadcast(content)
        return value

    def _broadcast(self, array: NDArray[np.uint8]) -> None:
        """Send an array from the first process, or fill it."""
        for start in range(0, len(array), PIECE):
            piece = torch.from_numpy(array[start : start + PIECE].copy())
            torch.distributed.broadcast(piece, src=FIRST)
            if not self.first:
                array[start : start + PIECE] = piece.numpy()

    @staticmethod
    def _broadcast_size(size: int | None) -> int | None:
        parcel = [size]
        torch.distributed.broadcast_object_list(parcel, src=FIRST, device=torch.device("cpu"))
        return parcel[0]


ALONE = Ranks()


def started_by_torchrun() -> bool:
    """Return whether this process is one of several."""
    return int(os.environ.get("WORLD_SIZE") or "1") > 1


def local_index() -> int:
    """Return the index of this process, and of its GPU, on its machine."""
    return int(os.environ.get("LOCAL_RANK") or "0") if started_by_torchrun() else 0


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join the other processes, if there are any: by NCCL for GPUs, and by Gloo.

    Raises:
        LostProcessError: another process has ended.
    """
    if not started_by_torchrun():
        yield ALONE
        return
    backend = "gloo"
    if device.type == "cuda":
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Ranks(torch.distributed.get_rank(), torch.distributed.get_world_size())
    except RuntimeError as error:
        if isinstance(error, torch.distributed.DistError) or "gloo" in str(error):
            reason = " ".join(str(error).split())[:200]
            raise LostProcessError(f"another process has ended ({reason})") from None
        raise
    finally:
        torch.distributed.destroy_process_group()
