"""The operations of aligned sentences, of which an operation sequence model is estimated.

They are those of Moses' training (`misc/GenerateSequences.cpp`, `scripts/OSM/OSM-Train.perl`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from moses_feature.building.bitext import Bitext, Text
from moses_feature.decoder.operation_steps import (
    DELETED,
    NO_OPERATION,
    UNKNOWN_WORD,
    WORDS,
    Links,
    steps_of,
    way,
)
from moses_feature.runtime.arrays import Flags

ORDER = 5
PRUNED = (0, 0, 1)
"""How Moses' training estimates the model."""


def operations_of(source: Sequence[bytes], target: Sequence[bytes], links: Links) -> list[bytes]:
    """Return the operations that make a sentence pair, from left to right of the target."""
    names = []
    at = gap = mask = end = 0
    for step in steps_of(source, target, links):
        if step.kind != DELETED:
            moves = way(gap, mask, end, at, step.place)
            names += [WORDS[move] for move in moves if move != NO_OPERATION]
            mask |= 1 << (step.place - gap)
            while mask & 1:
                mask >>= 1
                gap += 1
            at = step.place + 1
            end = max(end, at)
        names.append(step.word)
    return names


class OperationText:
    """The operations of aligned sentences."""

    def __init__(self, bitext: Bitext) -> None:
        self._bitext = bitext
        self._text = Text.of_sentences(self._operations())

    def _operations(self) -> Iterator[list[bytes]]:
        bitext = self._bitext
        every = np.ones(len(bitext), dtype=np.bool_)
        sides = (text.sentences(every) for text in (bitext.source, bitext.target))
        bounds = pairwise(bitext.link_offsets.tolist())
        for source, target, (first, end) in zip(*sides, bounds, strict=True):
            yield operations_of(
                source, target, [(s, t) for s, t in bitext.links[first:end].tolist()]
            )

    def sentences(self, used: Flags) -> Iterator[list[bytes]]:
        """Yield the operations of some sentences, given a mask (sentences,).

        A word that is translated by itself, and occurs there only once, stands for unknown words.
        """
        alone = {b"_TRANS_%b_TO_%b" % (word, word) for word in _copied_once(self._bitext, used)}
        words = tuple(UNKNOWN_WORD if word in alone else word for word in self._text.words)
        return replace(self._text, words=words).sentences(used)


def _copied_once(bitext: Bitext, used: Flags) -> list[bytes]:
    """Return the source words that are linked once: to the same word, which has no other link."""
    sentence = np.repeat(np.arange(len(bitext)), np.diff(bitext.link_offsets))
    ids, single = [], used[sentence]
    for side, text in enumerate((bitext.source, bitext.target)):
        places = text.offsets[sentence] + bitext.links[:, side]
        ids.append(text.ids[places])
        single = single & (np.bincount(places)[places] == 1)
    numbers = {word: number for number, word in enumerate(bitext.source.words)}
    same = np.array([numbers.get(word, -1) for word in bitext.target.words])[ids[1]] == ids[0]
    links = np.bincount(ids[0][used[sentence]], minlength=len(numbers))
    copied = np.bincount(ids[0][single & same], minlength=len(numbers))
    return [bitext.source.words[number] for number in np.flatnonzero((links == 1) & (copied == 1))]
