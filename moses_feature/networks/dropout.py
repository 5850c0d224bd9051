"""Dropout (Srivastava et al. 2014), compiled for the CPU: one pass, of which nothing is kept.

PyTorch's own draws a double for each component there and keeps what it multiplied by, which takes
an eighth of the time of training a Transformer. Here the place of a component and two seeds are
hashed, once more for the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import Function

from moses_feature.networks.computation import array_of, in_threads
from moses_feature.networks.kernels import shortened, widened
from moses_feature.runtime.arrays import Floats32
from moses_feature.runtime.compiled import compiled

F, U = np.float32, np.uint32
_GOLDEN, _SECOND, _THIRD = U(0x9E3779B9), U(0x21F0AAAD), U(0x735A2D97)
FEWEST = 1 << 16
"""Components of a thread."""


@compiled(floats="contracted")
def drawn(place: int, first: np.uint32, second: np.uint32) -> np.uint32:
    """Return 32 random bits, a hash of a place and two seeds."""
    bits = U(U(place) * _GOLDEN + first)
    bits = U((bits ^ (bits >> U(16))) * _SECOND + second)
    bits = U((bits ^ (bits >> U(15))) * _THIRD)
    return U(bits ^ (bits >> U(15)))


@compiled(floats="contracted")
def drop(
    values: Floats32,
    before: int,
    seeds: tuple[np.uint32, np.uint32],
    least: np.uint32,
    found: Floats32,
) -> None:
    """Write values (n,): scaled where the drawn bits are at least `least`, 0 elsewhere.

    Args:
        values: (n,).
        before: the number of components before them.
        seeds: two.
        least: 2^32 p.
        found: (n,), overwritten.
    """
    scale = F(1.0 / (1.0 - least / 2.0**32))
    for k in range(len(values)):
        kept = drawn(before + k, *seeds) >= least
        found[k] = F(values[k] * scale) if kept else F(0.0)


@compiled(floats="contracted")
def drop_short(
    values: NDArray[np.int16],
    before: int,
    seeds: tuple[np.uint32, np.uint32],
    least: np.uint32,
    found: NDArray[np.int16],
) -> None:
    """Write values in bfloat16; see `drop`."""
    scale = F(1.0 / (1.0 - least / 2.0**32))
    for k in range(len(values)):
        kept = drawn(before + k, *seeds) >= least
        scaled = shortened(F(widened(values[k]) * scale))
        found[k] = scaled if kept else np.int16(0)


COMPILED: dict[torch.dtype, Callable[..., None]] = {
    torch.float32: drop,
    torch.bfloat16: drop_short,
}


class _Dropped(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, p: float) -> Tensor:
        seeds = torch.randint(1 << 32, (2,)).tolist()
        ctx.given = tuple(map(U, seeds)), U(min(round(p * (1 << 32)), (1 << 32) - 1))
        return _dropped(values, *ctx.given)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _dropped(gradients[0], *ctx.given), None


def _dropped(values: Tensor, seeds: tuple[np.uint32, np.uint32], least: np.uint32) -> Tensor:
    values = values.contiguous()
    found = torch.empty_like(values)
    given, written = (array_of(of.view(-1)) for of in (values, found))

    def compute(part: slice) -> None:
        COMPILED[values.dtype](given[part], part.start, seeds, least, written[part])

    in_threads(compute, len(given), FEWEST)
    return found


class Dropout(nn.Dropout):
    """Zeroes components with probability `p` and scales the others by 1 / (1 - p)."""

    def forward(self, values: Tensor) -> Tensor:
        """Return values of any shape: those that are kept, scaled, and 0 for the others."""
        compiled = values.device.type == "cpu" and values.dtype in COMPILED
        if not self.training or self.p == 0 or not compiled:
            return super().forward(values)
        dropped: Tensor = _Dropped.apply(values, self.p)  # type: ignore[no-untyped-call]
        return dropped
