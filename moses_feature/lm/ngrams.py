"""The n-grams of a text as packed arrays: 3 bytes a word (5 with more than 65,536 words).

In training come 4 or 8 bytes a word for the order of an epoch and as much for the next one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from moses_feature.arrays import Integers
from moses_feature.models.folds import mixed, phrase_hash
from moses_feature.models.vocabulary import END, UNKNOWN, Vocabulary
from moses_feature.moses.phrase_table import tokens


class Text:
    """The sentences of a text, before their words are numbered.

    Attributes:
        counts: how often each word occurs.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._numbers: dict[bytes, int] = {}
        self._ids = array("i")
        self._lengths = array("I")
        self._hashes = array("Q")
        numbers = self._numbers
        for line in lines:
            words = tokens(line)
            self._ids.extend([numbers.setdefault(word, len(numbers)) for word in words])
            self._lengths.append(len(words))
            self._hashes.append(phrase_hash(words))
        ids = np.frombuffer(self._ids, dtype=np.int32)
        totals = np.bincount(ids, minlength=len(numbers))
        self.counts: dict[bytes, float] = dict(zip(numbers, totals.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self._lengths)

    def ngrams(self, vocabulary: Vocabulary, order: int) -> Ngrams:
        """Number the words."""
        final = np.array(
            [vocabulary.index.get(word, UNKNOWN) for word in self._numbers],
            dtype=np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32,
        )
        lengths = np.frombuffer(self._lengths, dtype=np.uint32).astype(np.int64)
        ends = np.cumsum(lengths + 1)  # each sentence and the symbol at its end
        ids = np.full(ends[-1] if len(ends) else 0, END, dtype=final.dtype)
        inside = np.ones(len(ids), dtype=np.bool_)
        inside[ends - 1] = False
        ids[inside] = final[np.frombuffer(self._ids, dtype=np.int32)]
        place = np.arange(len(ids)) - np.repeat(ends - lengths - 1, lengths + 1)
        before = np.minimum(place, order - 1).astype(np.uint8)
        return Ngrams(ids, before, order)

    def held_out(self, share: float, fewest: int, seed: int) -> NDArray[np.bool_]:
        """Choose sentences at random, equal ones together.

        Returns:
            (words and symbols at ends,) bool, 1 in sentences that are held out: at least `fewest`
            different ones, but no more than a tenth of all.
        """
        hashes = mixed(np.array(self._hashes, dtype=np.uint64), seed)
        distinct = np.unique(hashes)
        wanted = min(max(fewest, round(share * len(distinct))), len(distinct) // 10)
        chosen = np.isin(hashes, distinct[:wanted])
        lengths = np.frombuffer(self._lengths, dtype=np.uint32).astype(np.int64)
        return np.repeat(chosen, lengths + 1)


class Ngrams:
    """All n-grams of some sentences; one for each word and for each symbol at an end.

    Args:
        ids: (n,) the words of the sentences, END after each.
        before: (n,) words of the same sentence before each, `order` - 1 at most.
        order: words of an n-gram.
    """

    def __init__(self, ids: NDArray[np.unsignedinteger], before: NDArray[np.uint8], order: int):
        self._ids = ids
        self._before = before
        self._back = np.arange(order - 1, 0, -1)

    def __len__(self) -> int:
        return len(self._ids)

    def words(self, rows: NDArray[np.integer]) -> Integers:
        """Return the predicted words (len(rows),) of some n-grams."""
        words: Integers = self._ids[rows].astype(np.int64)
        return words

    def contexts(self, rows: NDArray[np.integer]) -> Integers:
        """Return the words before (len(rows), order - 1), END for those before the sentence."""
        places = rows.astype(np.int64)[:, None] - self._back
        inside = self._back <= self._before[rows][:, None]
        return np.where(inside, self._ids[np.maximum(places, 0)], END).astype(np.int64)
