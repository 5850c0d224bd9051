"""The phrases of a text, numbered in the order in which their lines stand in a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.building.bitext import Ids, NumberedText
from moses_feature.building.ngrams import NONE, Grams, grams_of
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.disk_arrays import filled


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
    def of_text(cls, text: NumberedText, longest: int, folder: Path | None = None) -> PhraseNumbers:
        """Number the phrases.

        The n-grams are a tree: each is a child of the one without its last word. A phrase stands
        where `|||` behind it stands among the last words of its children.

        Args:
            text: its words are in memory.
            longest: words of a phrase.
            folder: where all else is kept; None for memory.
        """
        grams = list(grams_of(text, longest, folder))
        sizes = [filled(1, len(of.place), np.int32, folder) for of in grams]  # of their subtrees
        for level in range(len(grams) - 1, 0, -1):
            _add_sizes(sizes[level - 1], grams[level].prefix, sizes[level])
        total = int(sizes[0].sum())
        at = filled(NONE, longest * len(text.ids), np.int32, folder).reshape(longest, -1)
        place, lengths = filled(0, total, np.int32, folder), filled(0, total, np.int8, folder)
        numbers = filled(0, len(sizes[0]), np.int32, folder)
        np.cumsum(sizes[0][:-1], out=numbers[1:])
        for level, found in enumerate(grams):
            longer = grams[level + 1] if level + 1 < len(grams) else _NO_GRAMS
            of_longer = filled(0, len(longer.place), np.int32, folder)
            size = sizes[level + 1] if len(of_longer) else of_longer
            words = text.ids, level + 1, text.bar
            _number(numbers, longer.prefix, longer.place, size, *words, of_longer)
            _note_places(found.at, numbers, at[level])
            place[numbers], lengths[numbers] = found.place, level + 1
            numbers = of_longer
        return cls(at, place, lengths)


_NONE = np.zeros(0, dtype=np.int32)
_NO_GRAMS = Grams(_NONE, _NONE, _NONE, _NONE, _NONE)


@compiled
def _add_sizes(sizes: Ids, prefix: Ids, of_longer: Ids) -> None:
    for number in range(len(prefix)):
        sizes[prefix[number]] += of_longer[number]


@compiled
def _number(
    numbers: Ids,
    prefix: Ids,
    place: Ids,
    sizes: Ids,
    ids: Ids,
    length: int,
    bar: int,
    of_longer: Ids,
) -> None:
    """Write the numbers of n-grams, and where the subtrees of those longer by a word begin.

    Args:
        numbers: (n-grams,) where the subtree of each begins, then its number.
        prefix: of the longer ones.
        place: of the longer ones.
        sizes: of the subtrees of the longer ones.
        ids: the words of the text.
        length: words of the shorter ones.
        bar: the number of `|||`.
        of_longer: (longer n-grams,) is written.
    """
    child = 0
    for parent in range(len(numbers)):
        following, number = numbers[parent], NONE
        while child < len(prefix) and prefix[child] == parent:
            if number == NONE and ids[place[child] + length] > bar:
                number = following
                following += 1
            of_longer[child] = following
            following += sizes[child]
            child += 1
        numbers[parent] = following if number == NONE else number


@compiled
def _note_places(grams: Ids, numbers: Ids, at: Ids) -> None:
    """Write the number of the phrase at each place, given that of the n-gram."""
    for place in range(len(at)):
        if grams[place] != NONE:
            at[place] = numbers[grams[place]]
