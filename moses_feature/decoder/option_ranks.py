"""The order of phrase options, and which of them are equal to the next phrase, compiled."""

from __future__ import annotations

import math

import numpy as np

from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.hash_table import first_place, mixed, next_place, size_for


def classes(rows: Floats) -> Integers:
    """Number the options (n, …) so that options with equal values have the same number."""
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    numbers: Integers = _numbered(flat + 0.0)  # makes -0.0 and 0.0 equal
    return numbers


@compiled
def _numbered(rows: Floats) -> Integers:
    """Number the distinct rows of (n, d) in the order of their first occurrence."""
    numbers = np.zeros(len(rows), np.int64)
    bits = rows.view(np.int64)
    table = np.full(size_for(len(rows)), -1, np.int64)
    count = 0
    for row in range(len(rows)):
        hashed = 0
        for column in range(rows.shape[1]):
            hashed = mixed(hashed, bits[row, column])
        slot = first_place(hashed, len(table))
        while table[slot] >= 0:
            same = True
            for column in range(rows.shape[1]):
                same = same and bits[table[slot], column] == bits[row, column]
            if same:
                break
            slot = next_place(slot, len(table))
        if table[slot] < 0:
            table[slot] = row
            numbers[row] = count
            count += 1
        else:
            numbers[row] = numbers[table[slot]]
    return numbers


@compiled
def ranked(
    estimate: Floats, offsets: Integers, table: Integers, limits: Integers, most: int
) -> tuple[Integers, Integers, Integers]:
    """Rank the options of each source phrase, best first, within the limits of the tables.

    Of equal options, the one that comes first in the table wins.

    Args:
        estimate: (options,) the scores to rank by.
        offsets: (source phrases + 1,) where the options of each begin.
        table: (options,) the table of each option, -1 for an unknown word.
        limits: (tables,) the most options of a source phrase from each table, 0 for all.
        most: the most options of a source phrase from all tables.

    Returns:
        `order`, `first` and `size` as in `Options`.
    """
    order = np.empty(len(estimate), np.int64)
    phrases = len(offsets) - 1
    first = np.empty(phrases, np.int64)
    count = np.zeros(phrases, np.int64)
    taken = np.zeros(len(limits), np.int64)
    used = 0
    for phrase in range(phrases):
        begin, end = offsets[phrase], offsets[phrase + 1]
        best = begin + np.argsort(-estimate[begin:end], kind="mergesort")
        taken[:] = 0
        first[phrase] = used
        for option in best:
            of_table = table[option]
            if of_table >= 0:
                if limits[of_table] > 0 and taken[of_table] >= limits[of_table]:
                    continue
                taken[of_table] += 1
            if count[phrase] < most:
                order[used] = option
                used += 1
                count[phrase] += 1
    return order[:used], first, count
