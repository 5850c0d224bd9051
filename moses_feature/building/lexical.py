"""Probabilities of single words by the links, as `LexicalTranslationModel.pm` of Moses counts them.

A word without links counts as linked to NULL. Probabilities have seven decimals, as in Moses' files
`lex.e2f` and `lex.f2e`, from which its scorer reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moses_feature.building.bitext import Bitext
from moses_feature.runtime.arrays import Floats, Integers

NULL = b"NULL"
TOGETHER = 1 << 16
"""Sentences whose links are counted together."""


@dataclass(frozen=True)
class LexicalTable:
    """p(a word | the word that it is linked to), in both directions.

    NULL has the number behind those of all words.

    Attributes:
        source_words, target_words: the numbers of words, NULL counted.
        key: (pairs,) source word * target words + target word, ascending.
        target_given_source, source_given_target: (pairs,) the probabilities.
    """

    source_words: int
    target_words: int
    key: Integers
    target_given_source: Floats
    source_given_target: Floats

    @classmethod
    def of_bitext(cls, bitext: Bitext) -> LexicalTable:
        """Count the links."""
        sources, targets = len(bitext.source.words) + 1, len(bitext.target.words) + 1
        found = [
            np.unique(_linked(bitext, first, first + TOGETHER), return_counts=True)
            for first in range(0, len(bitext), TOGETHER)
        ]
        keys, of_keys = (np.concatenate(part) for part in zip(*found, strict=True))
        key, number = np.unique(keys, return_inverse=True)
        counts = np.bincount(number, weights=of_keys)
        source, target = np.divmod(key, targets)
        of_source, of_target = (np.bincount(of, weights=counts)[of] for of in (source, target))
        direct, inverse = (_rounded(counts / total) for total in (of_source, of_target))
        return cls(sources, targets, key, direct, inverse)

    def lines(self, bitext: Bitext) -> Iterator[tuple[bytes, bytes]]:
        """Yield the lines of `lex.f2e` (p(target | source)) and of `lex.e2f`."""
        source, target = (*bitext.source.words, NULL), (*bitext.target.words, NULL)
        pairs = zip(
            (self.key // self.target_words).tolist(),
            (self.key % self.target_words).tolist(),
            self.target_given_source.tolist(),
            self.source_given_target.tolist(),
            strict=True,
        )
        for s, t, direct, inverse in pairs:
            yield (
                b"%b %b %.7f\n" % (target[t], source[s], direct),
                b"%b %b %.7f\n" % (source[s], target[t], inverse),
            )


def _linked(bitext: Bitext, begin: int, end: int) -> Integers:
    """Return the linked words (n,) of the sentences from `begin` on, before `end`, as keys."""
    offsets = bitext.link_offsets[begin : end + 1]
    sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    linked, alone = [], []
    for side, text in enumerate((bitext.source, bitext.target)):
        begins = text.offsets[begin : end + 1]
        ids = text.ids[begins[0] : begins[-1]]
        places = (begins - begins[0])[sentence] + bitext.links[offsets[0] : offsets[-1], side]
        linked.append(ids[places].astype(np.int64))
        is_alone = np.ones(len(ids), dtype=np.bool_)
        is_alone[places] = False
        alone.append(ids[is_alone].astype(np.int64))
    sources, targets = len(bitext.source.words) + 1, len(bitext.target.words) + 1
    with_null = alone[0] * targets + targets - 1, (sources - 1) * targets + alone[1]
    return np.concatenate((linked[0] * targets + linked[1], *with_null))


def _rounded(probabilities: Floats) -> Floats:
    """Return probabilities with the decimals that Moses' files have."""
    distinct, number = np.unique(probabilities, return_inverse=True)
    written = np.array([float(b"%.7f" % p) for p in distinct.tolist()])
    rounded: Floats = written[number]
    return rounded
