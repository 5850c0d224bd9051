"""The contexts of neural language models as numbers, for compiled search.

Equal contexts have equal numbers. They stand one after the other in an array, and a hash table
finds them there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.records import TREE, WITH_BASE, Contexts
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import compiled, inner
from moses_feature.runtime.hash_table import first_place, mixed, next_place

SLOTS_PER_ROW = 4


def new_contexts(room: int, widths: NDArray[np.int64], kinds: Integers) -> Contexts:
    """Return contexts with room for so many (a power of two)."""
    return Contexts(
        np.zeros((room, 1 + max(1, widths.max(initial=0))), dtype=np.int32),
        np.zeros(SLOTS_PER_ROW * room, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        widths,
        kinds,
    )


def copied(contexts: Contexts, room: int, count: int) -> Contexts:
    """Return the first contexts, `count` of them, with their numbers and with room for others."""
    new = new_contexts(room, contexts.widths, contexts.kinds)
    new.rows[:count] = contexts.rows[:count]
    _renumber(new, count)
    return new


@compiled
def _renumber(contexts: Contexts, count: int) -> None:
    """Enter the first rows into the hash table, in order, so that each gets its old number."""
    for _ in range(count):
        number_last(contexts)


@compiled
def number_of(contexts: Contexts, row: NDArray[np.int32]) -> int:
    """Return the number of a context; there must be room."""
    contexts.rows[contexts.used[0]] = row
    return number_last(contexts)


@inner
def number_after(contexts: Contexts, before: int, word: int) -> int:
    """Return the number of a context and one more word, -1 if there is no room.

    A base is that of one word: the context has none then.
    """
    count = contexts.used[0]
    if count == len(contexts.rows):
        return -1
    old, new = contexts.rows[before], contexts.rows[count]
    last = len(new) - 1
    kind, unused = contexts.kinds[old[0]], last - contexts.widths[old[0]]
    new[0] = old[0]
    for place in range(1, last):
        new[place] = old[place + 1] if place > unused and kind != TREE else 0
    if kind == WITH_BASE:
        new[unused + 1] = 0
    elif kind == TREE:
        new[last - 1] = before
    new[last] = word
    return number_last(contexts)


@inner
def number_with_base(contexts: Contexts, before: int, base: int) -> int:
    """Return the number of a context with another base, -1 if there is no room."""
    count = contexts.used[0]
    if count == len(contexts.rows):
        return -1
    old, new = contexts.rows[before], contexts.rows[count]
    for place in range(len(new)):
        new[place] = old[place]
    new[len(new) - contexts.widths[old[0]]] = base
    return number_last(contexts)


@inner
def number_last(contexts: Contexts) -> int:
    """Return the number of the row behind those in use; if it is new, it is in use then."""
    count = contexts.used[0]
    row = contexts.rows[count]
    hashed = 0
    for place in range(len(row)):
        hashed = mixed(hashed, row[place])
    size = len(contexts.slots)
    slot = first_place(hashed, size)
    while contexts.slots[slot] != 0:
        known = contexts.slots[slot] - 1
        same = True
        for place in range(len(row)):
            same = same and contexts.rows[known, place] == row[place]
        if same:
            return known
        slot = next_place(slot, size)
    contexts.slots[slot] = count + 1
    contexts.used[0] += 1
    return count


@inner
def same_end(contexts: Contexts, one: int, other: int, words: int) -> bool:
    """Return whether two nodes of a tree end with the same words, as many as are given."""
    last = contexts.rows.shape[1] - 1
    for _ in range(words):
        if one == other or (one < 0 and other < 0):
            return True
        if one < 0 or other < 0 or contexts.rows[one, last] != contexts.rows[other, last]:
            return False
        one, other = contexts.rows[one, last - 1], contexts.rows[other, last - 1]
    return True


@inner
def hash_of_end(contexts: Contexts, node: int, words: int) -> int:
    """Return a hash of what `same_end` compares."""
    last = contexts.rows.shape[1] - 1
    hashed = 0
    for _ in range(words):
        if node < 0:
            break
        hashed = mixed(hashed, contexts.rows[node, last])
        node = contexts.rows[node, last - 1]
    return hashed
