"""Hash tables with open addressing, and arrays that grow, for compiled code.

A table is an array whose length is a power of two. An entry stands at the place that its hash
says, or at the first free one behind it.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import compiled, inner, part

FACTOR = -7046029254386353131
"""2^64 divided by the golden ratio, as a signed number."""


@inner
def mixed(state: int, value: int) -> int:
    """Return the hash of a sequence, given that of the sequence before its last value."""
    product = (state ^ value) * FACTOR
    return product ^ (product >> 32)


@inner
def first_place(hashed: int, size: int) -> int:
    """Return where in a table of some size an entry with this hash is looked for first."""
    return (hashed ^ (hashed >> 32)) & (size - 1)


@inner
def next_place(place: int, size: int) -> int:
    """Return where it is looked for next."""
    return (place + 1) & (size - 1)


@inner
def place_of(keys: Integers, key: int) -> int:
    """Return where a key stands in a table, or where it may be put.

    Args:
        keys: 0 where the table is free.
        key: any number but 0.
    """
    place = first_place(key * FACTOR, len(keys))
    while keys[place] != 0 and keys[place] != key:
        place = next_place(place, len(keys))
    return place


@compiled
def size_for(entries: int) -> int:
    """Return the length of a table that is never more than half full."""
    size = 16
    while size < 2 * entries:
        size *= 2
    return size


A = TypeVar("A", bound=NDArray[Any])


@part
def grown(array: A, size: int) -> A:
    """Return a copy of an array with room for more."""
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger  # type: ignore[return-value]
