"""The data structures of cube pruning: recombination table, groups and heap; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_feature.decoder.graph import Hypotheses
from moses_feature.runtime.arrays import Floats, Integers, Record, Records
from moses_feature.runtime.compiled import INT_0, helper
from moses_feature.runtime.hash_table import first_place, mixed, next_place


class Groups(NamedTuple):
    """The hypotheses that are expanded, grouped by stack, coverage and last covered word.

    Attributes:
        members: hypotheses, group after group, best first.
        first: where each group begins, and the end of the last one.
        of_stack: (stacks + 1,) where the groups of each stack begin.
    """

    members: Integers
    first: Integers
    of_stack: Integers


@helper
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


@helper
def sink(heap: Integers, priority: Floats, used: int, place: int) -> None:
    """Move the item at a place down to its place in the heap."""
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


@helper
def pop(heap: Integers, priority: Floats, used: int) -> int:
    """Remove the item of highest priority from a heap that holds `used` items, and return it."""
    item = heap[0]
    heap[0] = heap[used - 1]
    sink(heap, priority, used - 1, INT_0)
    return item


@helper
def heapify(heap: Integers, priority: Floats, used: int) -> None:
    """Turn items in any order into a heap."""
    for place in range(used // 2 - 1, -1, -1):
        sink(heap, priority, used, place)


@helper(inline=False)
def no_groups(room: int, size: int) -> Groups:
    """Return groups with a capacity of `room` hypotheses, for a sentence of `size` words."""
    return Groups(
        np.zeros(room, np.int64), np.zeros(room + 1, np.int64), np.zeros(size + 2, np.int64)
    )


@helper(inline=False)
def add_groups(
    kept: Integers, stack: int, table: Integers, hypotheses: Hypotheses, groups: Groups
) -> None:
    """Add the groups of a stack, from its hypotheses best first.

    The content of the table is overwritten.
    """
    # Find the group of each hypothesis; the table holds the first member of each group.
    table[:] = -1
    group_of = np.empty(len(kept), np.int64)
    sizes = np.zeros(len(kept), np.int64)
    count = 0
    for index in range(len(kept)):
        hypothesis = hypotheses.records[kept[index]]
        slot = first_place(hash_of_cubes(hypothesis), len(table))
        while table[slot] >= 0:
            if same_cubes(hypotheses.records[kept[table[slot]]], hypothesis):
                break
            slot = next_place(slot, len(table))
        if table[slot] < 0:
            table[slot] = index
            group_of[index] = count
            count += 1
        else:
            group_of[index] = group_of[table[slot]]
        sizes[group_of[index]] += 1
    # Write the members group after group, still best first.
    known = groups.of_stack[stack]
    for group in range(count):
        groups.first[known + group + 1] = groups.first[known + group] + sizes[group]
    sizes[:] = 0
    for index in range(len(kept)):
        group = group_of[index]
        groups.members[groups.first[known + group] + sizes[group]] = kept[index]
        sizes[group] += 1
    groups.of_stack[stack + 1] = known + count


@helper
def same_cubes(one: Record, other: Record) -> bool:
    """Return whether two hypotheses have the same coverage and end at the same word."""
    return bool(one.gap == other.gap and one.mask == other.mask and one.end == other.end)


@helper
def hash_of_cubes(hypothesis: Record) -> int:
    """Return a hash of the fields that `same_cubes` compares."""
    return mixed(mixed(mixed(np.int64(0), hypothesis.gap), hypothesis.mask), hypothesis.end)


@helper
def _same_future(one: Record, other: Record, forward_class: Integers, orientation: bool) -> bool:
    """Return whether two hypotheses have the same future, apart from language model states."""
    same = same_cubes(one, other) and one.written == other.written
    if orientation:
        same = same and one.start == other.start
        same = same and forward_class[one.option] == forward_class[other.option]
    return same


@helper
def recombine(
    new: int,
    table: Integers,
    records: Records,
    states: Integers,
    forward_class: Integers,
    orientation: bool,
) -> None:
    """Enter a hypothesis into a hash table, or chain it to the one that it recombines with.

    The table holds the best of the hypotheses that recombine, -1 for a free slot.

    Args:
        new: the hypothesis.
        table: the table.
        records: all hypotheses.
        states: (hypotheses, models) states of the language models.
        forward_class: see `Options`.
        orientation: see `Options`.
    """
    made = records[new]
    hashed = mixed(hash_of_cubes(made), made.written)
    for model in range(states.shape[1]):
        hashed = mixed(hashed, states[new, model])
    slot = first_place(hashed, len(table))
    while table[slot] >= 0:
        best = table[slot]
        same = _same_future(records[best], made, forward_class, orientation)
        for model in range(states.shape[1]):
            same = same and states[best, model] == states[new, model]
        if same:
            break
        slot = next_place(slot, len(table))
    best = table[slot]
    if best < 0:
        table[slot] = new
    elif made.score > records[best].score:
        made.next_worse = best
        table[slot] = new
    else:
        made.next_worse = records[best].next_worse
        records[best].next_worse = new


@helper(inline=False)
def best_first(table: Integers, hypotheses: Records) -> Integers:
    """Return the hypotheses in a hash table, best first; of equal ones the older one first."""
    heap = table[table >= 0]
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, hypotheses, place, len(heap))
    for last in range(len(heap) - 1, 0, -1):  # a heap sort: the worst one goes to the end
        heap[0], heap[last] = heap[last], heap[0]
        _sink(heap, hypotheses, INT_0, last)
    return heap


@helper(inline=False)
def _sink(heap: Integers, hypotheses: Records, place: int, used: int) -> None:
    """Move a hypothesis down a heap of `used` ones whose first one is the worst."""
    while 2 * place + 1 < used:
        child = 2 * place + 1
        if child + 1 < used and _is_worse(hypotheses, heap[child + 1], heap[child]):
            child += 1
        if not _is_worse(hypotheses, heap[child], heap[place]):
            break
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@helper
def _is_worse(hypotheses: Records, one: int, other: int) -> bool:
    """Return whether a hypothesis has a lower total than another, or the same and is younger."""
    if hypotheses[one].total != hypotheses[other].total:
        return bool(hypotheses[one].total < hypotheses[other].total)
    return one > other
