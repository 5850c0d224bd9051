"""The limits of the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_POPS = 1000
DEFAULT_STACK = 200
"""The defaults of Moses (`moses/TypeDef.h`)."""


class SearchBounds(NamedTuple):
    """The limits of the search.

    Attributes:
        pops: hypotheses popped from the cubes for each stack.
        stack: hypotheses of a stack that are expanded.
        distortion: the longest jump in source words, at most `options.WINDOW`.
    """

    pops: int
    stack: int
    distortion: int


@dataclass(frozen=True)
class SearchLimits:
    """The limits that a user gives; None takes the value of the ini.

    Attributes:
        pops: hypotheses popped from the cubes for each stack.
        stack: hypotheses of a stack that are expanded.
    """

    pops: int | None = None
    stack: int | None = None
