"""BPE dropout (Provilkov et al. 2020): words are split in another way each time they are learnt.

Each time that two pieces could be merged, the merge is left out with some probability. The network
so meets the parts of its pieces, and words in several spellings.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from moses_feature.networks.phrases import Phrases, mixed, phrase_hash
from moses_feature.networks.pieces import MARK, PieceVocabulary
from moses_feature.runtime.arrays import Integers
from moses_feature.training.objective import Rows

SPLITS = 32
"""The ways in which a word may be split, one of which is drawn each time."""


class BpeDropout:
    """Splits the words of one side anew.

    Args:
        vocabulary: the pieces.
        rate: the probability that a merge is left out.
        seed: of the ways to split each word.
    """

    def __init__(self, vocabulary: PieceVocabulary, rate: float, seed: int) -> None:
        self._vocabulary = vocabulary
        self._rate = rate
        self._seed = seed
        self._splits: dict[bytes, list[list[int]]] = {}

    def split(self, phrases: Phrases, rows: Rows, epoch: int) -> Phrases:
        """Return the same words in other pieces.

        Args:
            phrases: sentences.
            rows: their numbers in the text.
            epoch: each splits them in another way.
        """
        ids, ends = phrases.ids.tolist(), phrases.offsets.tolist()
        sentences = [self._vocabulary.words(ids[begin:end]) for begin, end in pairwise(ends)]
        drawn = iter(self._drawn(rows, np.array([len(words) for words in sentences]), epoch))
        return Phrases.pack(
            [
                [piece for word in words for piece in self._splits_of(word)[next(drawn)]]
                for words in sentences
            ]
        )

    def _drawn(self, rows: Rows, lengths: Integers, epoch: int) -> list[int]:
        """Return which of its splits each word takes; it depends on row, place and epoch alone."""
        place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        words = (np.repeat(rows, lengths).astype(np.uint64) << np.uint64(32)) + place.astype(
            np.uint64
        )
        drawn: list[int] = (mixed(words, [self._seed, epoch]) % np.uint64(SPLITS)).tolist()
        return drawn

    def _splits_of(self, word: bytes) -> list[list[int]]:
        found = self._splits.get(word)
        if found is None:
            random = np.random.default_rng([self._seed, phrase_hash([word])])
            found = [self._split(word, random) for _ in range(SPLITS)]
            self._splits[word] = found
        return found

    def _split(self, word: bytes, random: np.random.Generator) -> list[int]:
        usual, index = self._vocabulary.pieces(word), self._vocabulary.index
        if len(usual) > 1 and any(map(self._vocabulary.is_byte, usual)):
            return usual  # it has characters that no piece has
        symbols = [symbol.encode() for symbol in MARK + word.decode()]
        while merges := self._merges(symbols, random):
            _, place = min(merges)  # pieces are numbered in the order in which they were learnt
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
        return [index[symbol] for symbol in symbols]

    def _merges(self, symbols: list[bytes], random: np.random.Generator) -> list[tuple[int, int]]:
        """Return rank and place of the merges that are not left out."""
        index = self._vocabulary.index
        kept = random.random(len(symbols) - 1) >= self._rate
        return [
            (index[merged], place)
            for place, (left, right) in enumerate(pairwise(symbols))
            if kept[place] and (merged := left + right) in index
        ]
