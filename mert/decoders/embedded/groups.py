"""The hypotheses of a stack that the same spans may follow, compiled; see `search`."""

from __future__ import annotations

import numpy as np

from mert.decoders.embedded.records import Groups, Hypotheses
from moses_feature.arrays import Integers, Record
from moses_feature.compiled import inner, part
from moses_feature.hash_table import first_place, mixed, next_place


@part
def no_groups(room: int, size: int) -> Groups:
    """Return groups with room for so many hypotheses of a sentence of so many words."""
    return Groups(
        np.zeros(room, np.int64), np.zeros(room + 1, np.int64), np.zeros(size + 2, np.int64)
    )


@part
def add_groups(
    kept: Integers, stack: int, table: Integers, hypotheses: Hypotheses, groups: Groups
) -> None:
    """Add the groups of a stack, of hypotheses that are given best first.

    The table, of the hypotheses before, is free to be used.
    """
    # Which group each belongs to; the table holds the first member of each.
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
    # Their members, group after group, in the order that they had.
    known = groups.of_stack[stack]
    for group in range(count):
        groups.first[known + group + 1] = groups.first[known + group] + sizes[group]
    sizes[:] = 0
    for index in range(len(kept)):
        group = group_of[index]
        groups.members[groups.first[known + group] + sizes[group]] = kept[index]
        sizes[group] += 1
    groups.of_stack[stack + 1] = known + count


@inner
def same_cubes(one: Record, other: Record) -> bool:
    """Return whether two hypotheses have the same coverage and end at the same word."""
    return bool(one.gap == other.gap and one.mask == other.mask and one.end == other.end)


@inner
def hash_of_cubes(hypothesis: Record) -> int:
    """Return a hash of what `same_cubes` compares."""
    return mixed(mixed(mixed(0, hypothesis.gap), hypothesis.mask), hypothesis.end)
