"""Arrays that grow, in compiled code."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moses_feature.compiled import part

A = TypeVar("A", bound=NDArray[Any])


@part
def grown(array: A, size: int) -> A:
    """Return a copy of an array with room for more."""
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger  # type: ignore[return-value]
