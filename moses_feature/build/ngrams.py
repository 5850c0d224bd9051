"""The phrases of a text, numbered in the order in which their lines stand in a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moses_feature.build.bitext import Ids, Text
from moses_feature.runtime.arrays import Integers

NONE = -1


@dataclass(frozen=True)
class Grams:
    """The n-grams of one length in a text, numbered in the order of their words.

    Attributes:
        at: (n,) the number of the n-gram that begins at each word; `NONE` behind a sentence's end.
        place: (n-grams,) where each of them occurs first.
        prefix: (n-grams,) the number of the n-gram without its last word among the shorter ones.
    """

    at: Ids
    place: Ids
    prefix: Ids


def grams_of(text: Text, longest: int) -> list[Grams]:
    """Return the n-grams of 1, 2, … `longest` words."""
    size = len(text.ids)
    left = np.repeat(text.offsets[1:], np.diff(text.offsets)) - np.arange(size)
    words = text.ids.astype(np.int64)
    found: list[Grams] = []
    before = np.zeros(size, dtype=np.int64)
    for length in range(1, longest + 1):
        inside = np.flatnonzero(left >= length)
        if not len(inside):
            break
        key = before[inside] * len(text.words) + words[inside + length - 1]
        distinct, place, number = np.unique(key, return_index=True, return_inverse=True)
        at = np.full(size, NONE, dtype=np.int32)
        at[inside] = number
        prefix = (distinct // len(text.words)).astype(np.int32)
        found.append(Grams(at, inside[place].astype(np.int32), prefix))
        before = at.astype(np.int64)
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
        grams = grams_of(text, longest)
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
