"""The n-grams of a text, numbered in the order of their words; as phrases, in that of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.build.bitext import Ids, Text
from moses_feature.runtime.arrays import Flags, Integers
from moses_feature.runtime.columns import Column, filled
from moses_feature.runtime.compiled import compiled

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
    text: Text, longest: int, folder: Path | None = None, part_bits: int = PART_BITS
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


def _words_of(text: Text, folder: Path | None) -> Grams:
    """Return the words that occur."""
    count = np.bincount(text.ids, minlength=len(text.words)).astype(np.int32)
    occurring = np.flatnonzero(count)
    number = (np.cumsum(count > 0) - 1).astype(np.int32)
    first = np.empty(len(text.words), dtype=np.int32)
    _note_first(text.ids, first)
    at = Column(np.int32, folder)
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
    text: Text, ends: Flags, shorter: Grams, length: int, folder: Path | None, part_bits: int
) -> Grams:
    """Return the n-grams that are longer by a word."""
    word_bits = len(text.words).bit_length()
    bits = min(part_bits, (KEY_BITS - word_bits) // 2)
    at = filled(NONE, len(text.ids), np.int32, folder)
    columns = [Column(np.int32, folder) for _ in range(4)]
    size = 0
    for low, high in pairwise(_bounds(shorter.count, 1 << bits)):
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
def _bounds(count: Ids, most: int) -> list[int]:
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


@dataclass(frozen=True)
class PhraseNumbers:
    """All phrases of a text up to some length; their numbers are their places in a sorted table.

    Attributes:
        at: (longest, n) the number of the phrase of 1, 2, … words from each word on; `NONE` for
            none.
        place, length: (phrases,) where each phrase occurs first, and its words.
    """

    at: NDArray[np.int32]
    place: Ids
    length: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.place)

    @classmethod
    def of_text(cls, text: Text, longest: int) -> PhraseNumbers:
        """Number the phrases.

        The n-grams are a tree: each is a child of the one without its last word. A phrase stands
        where `|||` behind it stands among the last words of its children.
        """
        grams = list(grams_of(text, longest))
        sizes = [np.ones(len(level.place), dtype=np.int64) for level in grams]
        for level in range(len(grams) - 1, 0, -1):
            prefix = grams[level].prefix
            sizes[level - 1] += np.bincount(
                prefix, weights=sizes[level], minlength=len(sizes[level - 1])
            ).astype(np.int64)
        total = int(sizes[0].sum())
        at = np.full((longest, len(text.ids)), NONE, dtype=np.int32)
        place, lengths = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int8)
        begins = np.cumsum(sizes[0]) - sizes[0]  # where the subtree of each n-gram begins
        for level, found in enumerate(grams):
            numbers = begins + _before_the_bar(grams, sizes, level, text)
            here = found.at != NONE
            at[level, here] = numbers[found.at[here]]
            place[numbers], lengths[numbers] = found.place, level + 1
            if level + 1 < len(grams):
                begins = _begins_of_children(grams, sizes, level, text, begins)
        return cls(at, place, lengths)


def _last_words(level: Grams, length: int, text: Text) -> Ids:
    last: Ids = text.ids[level.place + length - 1]
    return last


def _before_the_bar(grams: list[Grams], sizes: list[Integers], level: int, text: Text) -> Integers:
    """Return how many phrases of each n-gram's subtree stand before it."""
    if level + 1 == len(grams):
        return np.zeros(len(sizes[level]), dtype=np.int64)
    children = grams[level + 1]
    smaller = _last_words(children, level + 2, text) < text.bar
    weights = np.where(smaller, sizes[level + 1], 0)
    before: Integers = np.bincount(
        children.prefix, weights=weights, minlength=len(sizes[level])
    ).astype(np.int64)
    return before


def _begins_of_children(
    grams: list[Grams], sizes: list[Integers], level: int, text: Text, begins: Integers
) -> Integers:
    """Return where the subtree of each longer n-gram begins."""
    children, size = grams[level + 1], sizes[level + 1]
    before = np.cumsum(size) - size
    first = np.searchsorted(children.prefix, children.prefix)  # the first child of the same prefix
    behind = _last_words(children, level + 2, text) > text.bar
    of_children: Integers = begins[children.prefix] + before - before[first] + behind
    return of_children
