"""The n-grams of a text, numbered in the order of their words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from moses_feature.building.bitext import Ids, NumberedText
from moses_feature.runtime.arrays import Flags, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.disk_arrays import DiskArray, filled

NONE = -1
PART_BITS = 20
KEY_BITS = 62


@dataclass(frozen=True)
class Grams:
    """The n-grams of one length in a text, numbered in the order of their words.

    Attributes:
        at: (n,) the number of the n-gram that begins at each word; `NONE` behind a sentence's end.
        place: (n-grams,) where each of them occurs first.
        count: (n-grams,) how often it occurs.
        prefix: (n-grams,) the number of the n-gram without its last word among the shorter ones.
        suffix: (n-grams,) that of the n-gram without its first word.
    """

    at: Ids
    place: Ids
    count: Ids
    prefix: Ids
    suffix: Ids


def grams_of(
    text: NumberedText, longest: int, folder: Path | None = None, part_bits: int = PART_BITS
) -> Iterator[Grams]:
    """Yield the n-grams of 1, 2, … `longest` words, up to the length of the longest sentence.

    Longer n-grams are found in parts, each those of some prefixes: an n-gram there is a number,
    made of its prefix, its last word and its place, and these numbers are sorted.

    Args:
        text: its words are in memory.
        longest: at least 1.
        folder: where all else is kept; None for memory.
        part_bits: a part has 2 to this power occurrences at most, or those of a single prefix.
    """
    ends = np.zeros(len(text.ids), dtype=np.bool_)
    ends[text.offsets[1:] - 1] = True
    shorter = _words_of(text, folder)
    yield shorter
    for length in range(2, longest + 1):
        shorter = _longer(text, ends, shorter, length, folder, part_bits)
        if not len(shorter.place):
            return
        yield shorter


def _words_of(text: NumberedText, folder: Path | None) -> Grams:
    """Return the words that occur."""
    count = np.bincount(text.ids, minlength=len(text.words)).astype(np.int32)
    occurring = np.flatnonzero(count)
    number = (np.cumsum(count > 0) - 1).astype(np.int32)
    first = np.empty(len(text.words), dtype=np.int32)
    _note_first(text.ids, first)
    at = DiskArray(np.int32, folder)
    for ids in np.array_split(text.ids, 1 + (len(text.ids) >> PART_BITS)):
        at.append(number[ids])
    none = np.zeros(len(occurring), dtype=np.int32)
    return Grams(at.array(), first[occurring], count[occurring], none, none)


@compiled
def _note_first(ids: Ids, first: Ids) -> None:
    """Write where each word occurs first."""
    for place in range(len(ids) - 1, -1, -1):
        first[ids[place]] = place


def _longer(
    text: NumberedText,
    ends: Flags,
    shorter: Grams,
    length: int,
    folder: Path | None,
    part_bits: int,
) -> Grams:
    """Return the n-grams that are longer by a word."""
    word_bits = len(text.words).bit_length()
    bits = min(part_bits, (KEY_BITS - word_bits) // 2)
    at = filled(NONE, len(text.ids), np.int32, folder)
    columns = [DiskArray(np.int32, folder) for _ in range(4)]
    size = 0
    for low, high in pairwise(bounds_of(shorter.count, 1 << bits)):
        room = int(shorter.count[low:high].sum())
        places, keys = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int64)
        found = _occurrences(shorter.at, text.ids, ends, length, low, high, word_bits, places, keys)
        places, keys = places[:found], keys[:found]
        place_bits = found.bit_length()
        keys <<= place_bits
        keys |= np.arange(found)
        keys.sort()
        order = keys & ((1 << place_bits) - 1)
        keys >>= place_bits
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        count = np.diff(begins, append=found)
        number = np.empty(found, dtype=np.int32)
        number[order] = np.repeat(np.arange(size, size + len(begins), dtype=np.int32), count)
        at[places] = number
        first, prefix = order[begins], low + (keys[begins] >> word_bits)
        for column, values in zip(
            columns, (places[first], count, prefix, shorter.at[places + 1][first]), strict=True
        ):
            column.append(values)
        size += len(begins)
    return Grams(at, *(column.array() for column in columns))


@compiled
def bounds_of(count: Ids, most: int) -> list[int]:
    """Return where parts of the n-grams begin that occur so often, at most, or are a single one."""
    bounds, together = [0], 0
    for number in range(len(count)):
        if together and together + count[number] > most:
            bounds.append(number)
            together = 0
        together += count[number]
    bounds.append(len(count))
    return bounds


@compiled
def _occurrences(
    at: Ids,
    ids: Ids,
    ends: Flags,
    length: int,
    low: int,
    high: int,
    word_bits: int,
    places: Ids,
    keys: Integers,
) -> int:
    """Write where n-grams of a length with some prefixes occur, and a number of each.

    The number is that of its prefix, less the lowest, and behind it that of its last word. Returns
    how many were found.
    """
    found = 0
    for place in range(len(at)):
        if low <= at[place] < high and not ends[place + length - 2]:
            places[found] = place
            keys[found] = (at[place] - low) << word_bits | ids[place + length - 1]
            found += 1
    return found
