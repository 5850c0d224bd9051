"""A binary heap of item numbers, highest priority first, and arrays that grow; compiled."""

from __future__ import annotations

import numpy as np

from mert.decoders.embedded.compiled import compiled, inner


@inner
def push(heap, priority, used, item):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Put an item into a heap that holds `used` items."""
    place = used
    while place > 0:
        parent = (place - 1) >> 1
        if priority[heap[parent]] >= priority[item]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


@inner
def sink(heap, priority, used, place):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Move the item at a place down to where it belongs."""
    item = heap[place]
    while True:
        child = 2 * place + 1
        if child >= used:
            break
        if child + 1 < used and priority[heap[child + 1]] > priority[heap[child]]:
            child += 1
        if priority[heap[child]] <= priority[item]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item


@inner
def pop(heap, priority, used):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Take the item of highest priority out of a heap that holds `used` items."""
    item = heap[0]
    heap[0] = heap[used - 1]
    sink(heap, priority, used - 1, 0)
    return item


@inner
def heapify(heap, priority, used):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Make a heap of any order of items."""
    for place in range(used // 2 - 1, -1, -1):
        sink(heap, priority, used, place)


@compiled
def grown(array, size):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return a copy of an array with room for more."""
    grown = np.empty(size, array.dtype)
    grown[: len(array)] = array
    return grown
