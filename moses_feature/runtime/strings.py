"""Byte strings, numbered in the order of their first appearance; compiled.

The strings are stored in one array of bytes; a hash table finds the number of a string.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import INT_0, compiled, helper
from moses_feature.runtime.hash_table import first_place, mixed, next_place, size_for


class Strings(NamedTuple):
    """Numbered byte strings.

    Attributes:
        pool: (capacity,) the bytes of all strings.
        begin, end: (strings,) where each string begins and ends in the pool.
        slots: number + 1 of a string, 0 for a free slot.
        used: (2,) the number of strings, and the bytes in use of the pool.
    """

    pool: Bytes
    begin: Integers
    end: Integers
    slots: NDArray[np.int32]
    used: Integers

    def of(self, number: int) -> bytes:
        """Return the string of a number."""
        return self.pool[self.begin[number] : self.end[number]].tobytes()

    def all(self) -> list[bytes]:
        """Return all strings in the order of their numbers."""
        count, size = self.used.tolist()
        content = self.pool[:size].tobytes()
        bounds = zip(self.begin[:count].tolist(), self.end[:count].tolist(), strict=True)
        return [content[first:last] for first, last in bounds]

    def number(self, string: bytes) -> int:
        """Return the number of a string, -1 if it has none."""
        found: int = _number(self, np.frombuffer(string, dtype=np.uint8))
        return found


def new_strings() -> Strings:
    """Return an empty set of strings."""
    return over(np.empty(0, dtype=np.uint8))


def over(pool: Bytes) -> Strings:
    """Return an empty set of strings whose future members are parts of an existing pool."""
    none = np.empty(0, dtype=np.int64)
    slots = np.zeros(16, dtype=np.int32)
    return Strings(pool, none, none, slots, np.array([0, len(pool)], dtype=np.int64))


def with_room(strings: Strings, count: int, size: int = 0) -> Strings:
    """Return the strings with a capacity of `count` more strings of `size` more bytes in total."""
    known, stored = strings.used.tolist()
    if known + count > len(strings.begin):
        room = 2 * (known + count)
        slots = np.zeros(size_for(room), dtype=np.int32)
        begin, end = (np.empty(room, dtype=np.int64) for _ in range(2))
        begin[:known], end[:known] = strings.begin[:known], strings.end[:known]
        strings = strings._replace(begin=begin, end=end, slots=slots)
        _enter_again(strings)
    if stored + size > len(strings.pool):
        pool = np.empty(2 * (stored + size), dtype=np.uint8)
        pool[:stored] = strings.pool[:stored]
        strings = strings._replace(pool=pool)
    return strings


@compiled
def _enter_again(strings: Strings) -> None:
    """Enter all strings into an empty table again."""
    for number in range(strings.used[0]):
        hashed = hash_of(strings.pool, strings.begin[number], strings.end[number])
        slot = first_place(hashed, len(strings.slots))
        while strings.slots[slot] != 0:
            slot = next_place(slot, len(strings.slots))
        strings.slots[slot] = number + 1


@compiled
def _number(strings: Strings, text: Bytes) -> int:
    number: int = strings.slots[slot_of(strings, text, INT_0, len(text))] - 1
    return number


@helper
def hash_of(text: Bytes, first: int, last: int) -> int:
    """Return the hash of a part of a text."""
    hashed = last - first
    value = INT_0
    for place in range(first, last):
        value = (value << 8) | text[place]
        if (place - first) & 7 == 7:
            hashed = mixed(hashed, value)
            value = INT_0
    return mixed(hashed, value)


@helper
def same(one: Bytes, first: int, last: int, other: Bytes, begin: int, end: int) -> bool:
    """Return whether parts of two texts are the same."""
    if last - first != end - begin:
        return False
    for place in range(last - first):  # noqa: SIM110  # compiled
        if one[first + place] != other[begin + place]:
            return False
    return True


@helper
def slot_of(strings: Strings, text: Bytes, first: int, last: int) -> int:
    """Return the slot of a part of a text, or the free slot for it."""
    slot = first_place(hash_of(text, first, last), len(strings.slots))
    while strings.slots[slot] != 0:
        number = strings.slots[slot] - 1
        if same(strings.pool, strings.begin[number], strings.end[number], text, first, last):
            break
        slot = next_place(slot, len(strings.slots))
    return slot


@helper
def number_in_pool(strings: Strings, first: int, last: int) -> int:
    """Return the number of a string in the pool, a new one if it has none."""
    slot = slot_of(strings, strings.pool, first, last)
    if strings.slots[slot] == 0:
        _enter(strings, slot, first, last)
    number: int = strings.slots[slot] - 1
    return number


@helper
def number_copied(strings: Strings, text: Bytes, first: int, last: int) -> int:
    """Return the number of a part of a text; a new one is copied to the pool, which has room."""
    slot = slot_of(strings, text, first, last)
    if strings.slots[slot] == 0:
        begin = strings.used[1]
        for place in range(last - first):
            strings.pool[begin + place] = text[first + place]
        strings.used[1] += last - first
        _enter(strings, slot, begin, begin + last - first)
    number: int = strings.slots[slot] - 1
    return number


@helper
def _enter(strings: Strings, slot: int, first: int, last: int) -> None:
    number = strings.used[0]
    strings.begin[number] = first
    strings.end[number] = last
    strings.used[0] += 1
    strings.slots[slot] = number + 1


@compiled
def add_all(strings: Strings, text: Bytes, ends: Integers) -> None:
    """Number strings that stand one after the other in a text; the capacity must suffice."""
    first = INT_0
    for last in ends:
        number_copied(strings, text, first, last)
        first = last


def added(strings: Strings, new: list[bytes]) -> tuple[Strings, list[int]]:
    """Add strings; return the larger set and the numbers of the added strings."""
    text = np.frombuffer(b"".join(new), dtype=np.uint8)
    ends = np.cumsum([len(string) for string in new], dtype=np.int64)
    strings = with_room(strings, len(new), len(text))
    add_all(strings, text, ends)
    return strings, [strings.number(string) for string in new]
