"""A binary heap of item numbers, highest priority first, compiled.

The heap is an array of which the first `used` entries count; `priority` is that of each item.
"""

from __future__ import annotations

from moses_feature.arrays import Floats, Integers
from moses_feature.compiled import inner


@inner
def push(heap: Integers, priority: Floats, used: int, item: int) -> None:
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
def sink(heap: Integers, priority: Floats, used: int, place: int) -> None:
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
def pop(heap: Integers, priority: Floats, used: int) -> int:
    """Take the item of highest priority out of a heap that holds `used` items."""
    item = heap[0]
    heap[0] = heap[used - 1]
    sink(heap, priority, used - 1, 0)
    return item


@inner
def heapify(heap: Integers, priority: Floats, used: int) -> None:
    """Make a heap of any order of items."""
    for place in range(used // 2 - 1, -1, -1):
        sink(heap, priority, used, place)
