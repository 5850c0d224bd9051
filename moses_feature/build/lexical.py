"""Probabilities of single words by the links, as `LexicalTranslationModel.pm` of Moses counts them.

A word without links counts as linked to NULL. Probabilities have seven decimals, as in Moses' files
`lex.e2f` and `lex.f2e`, from which its scorer reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moses_feature.build.bitext import Bitext
from moses_feature.runtime.arrays import Flags, Floats, Integers

NULL = b"NULL"


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
    def of_bitext(cls, bitext: Bitext, used: Flags) -> LexicalTable:
        """Count the links of the used sentences (sentences,)."""
        sources, targets = len(bitext.source.words) + 1, len(bitext.target.words) + 1
        sentence = np.repeat(np.arange(len(bitext)), np.diff(bitext.link_offsets))
        linked = used[sentence]
        places = [
            text.offsets[sentence] + bitext.links[:, side]
            for side, text in enumerate((bitext.source, bitext.target))
        ]
        pairs = [(bitext.source.ids[places[0][linked]], bitext.target.ids[places[1][linked]])]
        for side, text in enumerate((bitext.source, bitext.target)):
            alone = np.repeat(used, np.diff(text.offsets))
            alone[places[side]] = False
            words = text.ids[alone]
            null = np.full(len(words), (targets if side == 0 else sources) - 1)
            pairs.append((words, null) if side == 0 else (null, words))
        source, target = (
            np.concatenate(part).astype(np.int64) for part in zip(*pairs, strict=True)
        )
        key, counts = np.unique(source * targets + target, return_counts=True)
        of_source = np.bincount(source, minlength=sources)[key // targets]
        of_target = np.bincount(target, minlength=targets)[key % targets]
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


def _rounded(probabilities: Floats) -> Floats:
    """Return probabilities with the decimals that Moses' files have."""
    distinct, number = np.unique(probabilities, return_inverse=True)
    written = np.array([float(b"%.7f" % p) for p in distinct.tolist()])
    rounded: Floats = written[number]
    return rounded
