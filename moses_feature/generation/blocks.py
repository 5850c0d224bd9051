"""Work on rows in blocks that are always as large: no row depends on those beside it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

ROWS = 64
"""Prefixes, or source phrases, that go through the network together, always as many."""


def in_blocks(work: Callable[[Tensor], tuple[Tensor, ...]], count: int) -> tuple[Tensor, ...]:
    """Work on ROWS rows at a time, the last ones repeated; return what comes of all of them."""
    blocks = [
        work(torch.arange(first, first + ROWS).clamp(max=count - 1))
        for first in range(0, count, ROWS)
    ]
    return tuple(torch.cat(parts)[:count] for parts in zip(*blocks, strict=True))
