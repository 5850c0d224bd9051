"""How networks are computed on the CPU: threads, matrix products of blocks, compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moses_feature.networks import kernels
from moses_feature.networks.architectures import Dtype

T = TypeVar("T")

ROWS = 512
"""Rows of a block."""


@dataclass(frozen=True)
class Computation:
    """How the networks of a scorer are computed on the CPU.

    Attributes:
        dtype: the type of the large products; all else is float32.
        normalised: whether log Z is subtracted.
        workers: the number of threads, each with its own blocks of rows.
        executor: the pool of these threads.
    """

    dtype: torch.dtype
    normalised: bool
    workers: int
    executor: Executor

    @classmethod
    def by(cls, threads: int | None, dtype: Dtype, normalised: bool) -> Computation:
        """Return one with some threads, None for as many as PyTorch uses; see `Scorer`."""
        workers = threads or torch.get_num_threads()
        executor = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        return cls(getattr(torch, dtype), normalised, workers, executor)


def in_threads(compute: Callable[[slice], T], count: int, fewest: int) -> list[T]:
    """Compute parts of something, in as many threads as PyTorch has; return what each returns.

    Args:
        compute: takes the bounds of a part; free of Python's lock for most of its time.
        count: the rows or numbers to divide.
        fewest: the least of a part, unless there are fewer.
    """
    threads = max(1, min(torch.get_num_threads(), count // fewest))
    bounds = [count * thread // threads for thread in range(threads + 1)]
    parts = list(map(slice, bounds, bounds[1:]))
    return [compute(*parts)] if threads == 1 else list(_pool(threads).map(compute, parts))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def array_of(tensor: Tensor) -> NDArray[Any]:
    """Return a tensor's numbers, of bfloat16 their bits; a copy unless they are contiguous."""
    tensor = tensor.contiguous()
    return tensor.view(torch.int16 if tensor.dtype == torch.bfloat16 else tensor.dtype).numpy()


def matrix(layer: nn.Linear, dtype: torch.dtype) -> Tensor:
    """Return the weights (in, out) of a layer, to be multiplied by rows from the left."""
    return layer.weight.detach().t().to(dtype)


class Product:
    """x W + b for blocks of K rows, b optional; each call overwrites the float32 result."""

    def __init__(self, weight: Tensor, rows: int, bias: Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias
        shape = (rows, weight.shape[1])
        self.result = weight.new_empty(shape, dtype=torch.float32)
        self._short = weight.dtype != torch.float32
        if self._short:
            self._operand = weight.new_empty(rows, weight.shape[0])
            self._short_result = weight.new_empty(shape)

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply (K, ·), float32, by the weights in the type of the weights."""
        if self._short:
            self._operand.copy_(x)
            torch.mm(self._operand, self._weight, out=self._short_result)
            self.result.copy_(self._short_result)
        else:
            torch.mm(x, self._weight, out=self.result)
        if self._bias is not None:
            self.result += self._bias
        return self.result


def _on_tensors(kernel: Callable[..., None]) -> Callable[..., None]:
    def function(*tensors: Tensor) -> None:
        kernel(*(tensor.numpy() for tensor in tensors))

    return function


encoder_gates = _on_tensors(kernels.encoder_gates)
encoder_state = _on_tensors(kernels.encoder_state)
decoder_state = _on_tensors(kernels.decoder_state)
maxout = _on_tensors(kernels.maxout)
tanh_in_place = _on_tensors(kernels.tanh_in_place)
add_exps = _on_tensors(kernels.add_exps)
logits_at = _on_tensors(kernels.logits_at)


def add_exps_of_most(logits: Tensor, bias: Tensor, first: int, *rest: Tensor) -> None:
    """See `kernels.add_exps_of_most`; `logits` is in bfloat16."""
    kernels.add_exps_of_most(
        array_of(logits), bias.numpy(), first, *(tensor.numpy() for tensor in rest)
    )
