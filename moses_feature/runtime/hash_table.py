"""Hash tables with open addressing, and arrays that grow, for compiled code.

A table is an array whose length is a power of two. An entry stands at the place that its hash
gives, or at the first free place behind it.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import compiled, helper

FACTOR = -7046029254386353131
"""2^64 divided by the golden ratio, as a signed number."""


@helper
def mixed(state: int, value: int) -> int:
    """Return the hash of a sequence, given the hash of the sequence without its last value."""
    product = (state ^ value) * FACTOR
    return product ^ (product >> 32)


@helper
def first_place(hashed: int, size: int) -> int:
    """Return the first place to look for an entry with this hash in a table of some size."""
    return (hashed ^ (hashed >> 32)) & (size - 1)


@helper
def next_place(place: int, size: int) -> int:
    """Return the next place to look at."""
    return (place + 1) & (size - 1)


@helper
def place_of(keys: Integers, key: int) -> int:
    """Return the place of a key in a table, or the free place for it.

    Args:
        keys: the keys; 0 for a free place.
        key: any number but 0.
    """
    place = first_place(key * FACTOR, len(keys))
    while keys[place] != 0 and keys[place] != key:
        place = next_place(place, len(keys))
    return place


@compiled
def size_for(entries: int) -> int:
    """Return the length of a table for `entries` entries that is at most half full."""
    size = 16
    while size < 2 * entries:
        size *= 2
    return size


A = TypeVar("A", bound=NDArray[Any])


@helper
def copy(values: A, to: A) -> None:
    """Write values to the beginning of another array."""
    for place in range(len(values)):  # numba needs two seconds to compile an assignment of slices
        to[place] = values[place]


@helper(inline=False)
def grown(array: A, size: int) -> A:
    """Return a copy of an array with a larger capacity."""
    larger = np.empty(size, array.dtype)
    copy(array, larger)
    return larger  # type: ignore[return-value]
