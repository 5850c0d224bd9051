"""What the sizes of all networks for pairs share, and the formats of products; free of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dtype = Literal["float32", "bfloat16"]
"""Of the large matrix products; weights are float32 either way."""

LARGEST_SIZE = 1 << 15


@dataclass(frozen=True)
class PairSizes:
    """Layer sizes of a network for pairs; each architecture has a kind of its own."""

    def __post_init__(self) -> None:
        for name, size in vars(self).items():
            if name != "unit" and (type(size) is not int or not 1 <= size <= LARGEST_SIZE):
                raise ValueError(f"{name}: expected 1 to {LARGEST_SIZE}, found {size!r}")
