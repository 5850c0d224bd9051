"""BPE dropout (Provilkov et al. 2020): words are split in another way each time they are learnt.

Each time that two pieces could be merged, the merge is left out with some probability. The network
so meets the parts of its pieces, and words in several spellings.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from moses_feature.networks.phrases import PackedSequences, mixed, phrase_hash
from moses_feature.networks.pieces import MARK, PieceVocabulary
from moses_feature.runtime.arrays import Integers
from moses_feature.training.objective import Rows

SPLITS = 32
"""The ways in which a word may be split, one of which is drawn each time."""

Pieces = tuple[int, ...]
"""The ids of the pieces of a word."""


class BpeDropout:
    """Splits the words of one side anew.

    Each word that it has met takes memory: some 700 bytes of captions, at a rate of 0.1.

    Args:
        vocabulary: the pieces.
        rate: the probability that a merge is left out.
        seed: of the ways to split each word.
        side: the number of the side, so that the two are split independently.
    """

    def __init__(self, vocabulary: PieceVocabulary, rate: float, seed: int, side: int = 0) -> None:
        self._vocabulary = vocabulary
        self._rate = rate
        self._seed = seed
        self._side = side
        begin = [vocabulary.spelling(n).startswith(MARK.encode()) for n in range(len(vocabulary))]
        self._begins = np.array(begin)
        self._splits: dict[Pieces, list[Pieces]] = {}

    def split(self, phrases: PackedSequences, rows: Rows, epoch: int) -> PackedSequences:
        """Return the same words in other pieces.

        Args:
            phrases: sentences.
            rows: their numbers in the text.
            epoch: each splits them in another way.
        """
        begins = np.flatnonzero(self._begins[phrases.ids])
        first_words = np.searchsorted(begins, phrases.offsets)
        drawn = self._drawn(rows, np.diff(first_words), epoch)
        ids, bounds = phrases.ids.tolist(), [*begins.tolist(), len(phrases.ids)]
        words = [
            self._splits_of(tuple(ids[first:last]))[way]
            for (first, last), way in zip(pairwise(bounds), drawn, strict=True)
        ]
        ends = np.cumsum([0, *map(len, words)])
        flat = [piece for word in words for piece in word]
        return PackedSequences(np.array(flat, dtype=phrases.ids.dtype), ends[first_words])

    def _drawn(self, rows: Rows, lengths: Integers, epoch: int) -> list[int]:
        """Return which of its splits each word takes; row, place and epoch decide."""
        place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        words = (np.repeat(rows.astype(np.int64), lengths) << 32) + place
        hashes = mixed(words.astype(np.uint64), [self._seed, self._side, epoch])
        drawn: list[int] = (hashes % np.uint64(SPLITS)).tolist()
        return drawn

    def _splits_of(self, usual: Pieces) -> list[Pieces]:
        """Return the ways to split a word that is usually split in some way."""
        found = self._splits.get(usual)
        if found is None:
            vocabulary, one_of_each = self._vocabulary, {usual: usual}
            if any(map(vocabulary.is_byte, usual)):  # it has characters that no piece has
                found = [usual] * SPLITS
            else:
                word = b"".join(map(vocabulary.spelling, usual))
                random = np.random.default_rng([self._seed, phrase_hash([word])])
                ways = (self._with_dropout(word.decode(), random) for _ in range(SPLITS))
                found = [one_of_each.setdefault(way, way) for way in ways]
            self._splits[usual] = found
        return found

    def _with_dropout(self, word: str, random: np.random.Generator) -> Pieces:
        symbols = [symbol.encode() for symbol in word]
        while merges := self._merges(symbols, random):
            _, place = min(merges)  # pieces are numbered in the order in which they were learnt
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
        return tuple(self._vocabulary.index[symbol] for symbol in symbols)

    def _merges(self, symbols: list[bytes], random: np.random.Generator) -> list[tuple[int, int]]:
        """Return rank and place of the merges that are not left out."""
        index = self._vocabulary.index
        kept = random.random(len(symbols) - 1) >= self._rate
        return [
            (index[merged], place)
            for place, (left, right) in enumerate(pairwise(symbols))
            if kept[place] and (merged := left + right) in index
        ]
