"""The operations of aligned sentences, of which an operation sequence model is estimated.

They are those of Moses' training (`misc/GenerateSequences.cpp`, `scripts/OSM/OSM-Train.perl`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from moses_feature.building.bitext import Bitext
from moses_feature.decoder.operation_steps import (
    DELETED,
    NO_OPERATION,
    UNKNOWN_WORD,
    WORDS,
    Links,
    steps_of,
    way,
)

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


def operation_sentences(bitext: Bitext) -> Iterator[list[bytes]]:
    """Yield the operations of each sentence, by its first alignment.

    A word that is translated by itself, and occurs only once, stands for unknown words.
    """
    bitext = bitext.once()
    alone = {b"_TRANS_%b_TO_%b" % (word, word) for word in _copied_once(bitext)}
    bounds = pairwise(bitext.link_offsets.tolist())
    sides = bitext.source.sentences(), bitext.target.sentences()
    for source, target, (first, end) in zip(*sides, bounds, strict=True):
        links = [(s, t) for s, t in bitext.links[first:end].tolist()]
        words = operations_of(source, target, links)
        yield [UNKNOWN_WORD if word in alone else word for word in words]


def _copied_once(bitext: Bitext) -> list[bytes]:
    """Return the source words that are linked once: to the same word, which has no other link."""
    sentence = np.repeat(np.arange(len(bitext)), np.diff(bitext.link_offsets))
    ids, single = [], np.ones(len(sentence), dtype=np.bool_)
    for side, text in enumerate((bitext.source, bitext.target)):
        places = text.offsets[sentence] + bitext.links[:, side]
        ids.append(text.ids[places])
        single &= np.bincount(places)[places] == 1
    numbers = {word: number for number, word in enumerate(bitext.source.words)}
    same = np.array([numbers.get(word, -1) for word in bitext.target.words])[ids[1]] == ids[0]
    links = np.bincount(ids[0], minlength=len(numbers))
    copied = np.bincount(ids[0][single & same], minlength=len(numbers))
    return [bitext.source.words[number] for number in np.flatnonzero((links == 1) & (copied == 1))]
