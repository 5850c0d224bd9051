"""The n-grams of a text as packed arrays: 3 bytes a word (5 with more than 65,536 words).

Training adds 4 or 8 bytes a word for the order of an epoch and as much for the next one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.phrase_table import tokens
from moses_feature.networks.phrases import mixed, phrase_hash
from moses_feature.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_feature.runtime.arrays import Integers


class TrainingText:
    """The sentences of a text, before their words are numbered."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
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

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def lengths(self) -> Integers:
        """Words of each sentence."""
        return np.frombuffer(self._lengths, dtype=np.uint32).astype(np.int64)

    def counts(self) -> dict[bytes, float]:
        """Return how often each word occurs."""
        ids = np.frombuffer(self._ids, dtype=np.int32)
        totals = np.bincount(ids, minlength=len(self._numbers))
        return dict(zip(self._numbers, totals.tolist(), strict=True))

    def ngrams(self, vocabulary: Vocabulary, order: int) -> TrainingNgrams:
        """Number the words, with END behind each sentence, and find the context of each."""
        final = np.array(
            [vocabulary.index.get(word, UNKNOWN) for word in self._numbers],
            dtype=np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32,
        )
        words = final[np.frombuffer(self._ids, dtype=np.int32)]
        ids: NDArray[np.unsignedinteger] = np.insert(words, np.cumsum(self.lengths), END)
        with_end = self.lengths + 1
        place = np.arange(len(ids)) - np.repeat(np.cumsum(with_end) - with_end, with_end)
        before = np.minimum(place, order - 1).astype(np.uint8)
        return TrainingNgrams(ids, before, order)

    def held_out(self, share: float, fewest: int, seed: int) -> NDArray[np.bool_]:
        """Choose sentences at random; equal ones are chosen together.

        Returns:
            (words and ENDs,) bool, True in sentences that are held out: at least `fewest` distinct
            ones, but no more than a tenth of all.
        """
        hashes = mixed(np.array(self._hashes, dtype=np.uint64), seed)
        distinct = np.unique(hashes)
        wanted = min(max(fewest, round(share * len(distinct))), len(distinct) // 10)
        chosen = np.isin(hashes, distinct[:wanted])
        return np.repeat(chosen, self.lengths + 1)


class TrainingNgrams:
    """All n-grams of some sentences, one for each word and each END.

    Args:
        ids: (n,) the words of the sentences, END after each.
        before: (n,) the number of words before each in its sentence, at most `order` - 1.
        order: words of an n-gram.

    Attributes:
        ids, before, order: see above.
    """

    def __init__(self, ids: NDArray[np.unsignedinteger], before: NDArray[np.uint8], order: int):
        self.ids = ids
        self.before = before
        self.order = order
        self._back = np.arange(order - 1, 0, -1)

    def __len__(self) -> int:
        return len(self.ids)

    def words(self, rows: NDArray[np.integer]) -> Integers:
        """Return the predicted words (len(rows),) of some n-grams."""
        words: Integers = self.ids[rows].astype(np.int64)
        return words

    def contexts(self, rows: NDArray[np.integer]) -> Integers:
        """Return the words before (len(rows), order - 1), END for places before the sentence."""
        places = rows.astype(np.int64)[:, None] - self._back
        inside = self._back <= self.before[rows][:, None]
        return np.where(inside, self.ids[np.maximum(places, 0)], END).astype(np.int64)
