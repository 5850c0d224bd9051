"""Contexts of language models, numbered in the order of their first appearance; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import compiled, helper
from moses_feature.runtime.hash_table import copy, first_place, mixed, next_place

SLOTS_PER_ROW = 4


class Contexts(NamedTuple):
    """Contexts of one or more models.

    Attributes:
        rows: (capacity, 1 + width) the number of the model, then the context. For a neural model:
            the ids of the words before, the nearest one last, 0 in front if its contexts are
            shorter than `width`. For an n-gram model: the length of its state, then its words.
        slots: a hash table of row + 1; 0 for a free slot.
        used: (1,) rows in use.
        widths: (models,) the width of each model's contexts; 0 if it has none here.
    """

    rows: NDArray[np.int32]
    slots: NDArray[np.int32]
    used: NDArray[np.int64]
    widths: NDArray[np.int64]


def new_contexts(room: int, widths: NDArray[np.int64]) -> Contexts:
    """Return empty contexts with a capacity of `room` (a power of two)."""
    return Contexts(
        np.zeros((room, 1 + max(1, widths.max(initial=0))), dtype=np.int32),
        np.zeros(SLOTS_PER_ROW * room, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        widths,
    )


def copied(contexts: Contexts, room: int, count: int) -> Contexts:
    """Return contexts of capacity `room` with the first `count` contexts, numbered as before."""
    new = new_contexts(room, contexts.widths)
    new.rows[:count] = contexts.rows[:count]
    _renumber(new, count)
    return new


@compiled
def _renumber(contexts: Contexts, count: int) -> None:
    """Enter the first rows into the hash table, in order, so that each keeps its number."""
    for _ in range(count):
        number_last(contexts)


@compiled
def number_of(contexts: Contexts, row: NDArray[np.int32]) -> int:
    """Return the number of a context; there must be a free row."""
    copy(row, contexts.rows[contexts.used[0]])
    return number_last(contexts)


@helper
def number_after(contexts: Contexts, before: int, word: int) -> int:
    """Return the number of a context extended by one word, -1 if no row is free."""
    count = contexts.used[0]
    if count == len(contexts.rows):
        return -1
    old, new = contexts.rows[before], contexts.rows[count]
    last = len(new) - 1
    unused = last - contexts.widths[old[0]]
    new[0] = old[0]
    for place in range(1, last):
        new[place] = old[place + 1] if place > unused else 0
    new[last] = word
    return number_last(contexts)


@helper
def number_last(contexts: Contexts) -> int:
    """Return the number of the row behind those in use; a new row is then in use."""
    return number_row(contexts.rows, contexts.slots, contexts.used)


@helper
def number_row(rows: NDArray[np.int32], slots: NDArray[np.int32], used: Integers) -> int:
    """Return the number of the row behind those in use; see `Contexts`."""
    count = used[0]
    row = rows[count]
    hashed = np.int64(0)
    for place in range(len(row)):
        hashed = mixed(hashed, row[place])
    slot = first_place(hashed, len(slots))
    while slots[slot] != 0:
        known = np.int64(slots[slot] - 1)
        same = True
        for place in range(len(row)):
            same = same and rows[known, place] == row[place]
        if same:
            return known
        slot = next_place(slot, len(slots))
    slots[slot] = count + 1
    used[0] += 1
    return count
