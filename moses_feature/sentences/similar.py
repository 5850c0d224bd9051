"""The sentences of a text that are most like another one: TF-IDF of (sub)words and their pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import UNKNOWN
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import compiled


class SimilarSentences:
    """An index of sentences by what is in them.

    Each word, and each pair of neighbours, has the weight (1 + log count) * (1 + log((1 + n) /
    (1 + m))), with n sentences, m of which have it. The cosine of the weights says how much two
    sentences are alike (Salton and Buckley 1988).

    Args:
        sentences: ids of their words.
    """

    def __init__(self, sentences: PackedSequences) -> None:
        self._count = len(sentences)
        self._stride = int(sentences.ids.max(initial=0)) + 2
        grams, rows = _grams(sentences, self._stride)
        self._grams, number = np.unique(grams, return_inverse=True)
        postings, counts = np.unique(number * self._count + rows, return_counts=True)
        of_gram, rows = np.divmod(postings, self._count)
        self._rows = rows.astype(np.int32)
        self._offsets = np.searchsorted(of_gram, np.arange(len(self._grams) + 1))
        having = np.diff(self._offsets)
        self._rarity = 1 + np.log((1 + self._count) / (1 + having))
        weights = (1 + np.log(counts)) * self._rarity[of_gram]
        lengths = np.sqrt(np.bincount(rows, weights**2, self._count))
        self._weights: Floats32 = (weights / lengths[rows]).astype(np.float32)

    def find(self, sentence: Sequence[int], count: int) -> Integers:
        """Return the most similar sentences, `count` at most, the most similar one first.

        Of equally similar ones the first in the text comes first.
        """
        found, _ = _grams(PackedSequences.pack([sentence]), self._stride)
        grams, counts = np.unique(found, return_counts=True)
        place = np.searchsorted(self._grams, grams)
        known = place < len(self._grams)
        known[known] = self._grams[place[known]] == grams[known]
        number = place[known]
        weights = (1 + np.log(counts[known])) * self._rarity[number]
        scores = np.zeros(self._count, dtype=np.float32)
        index = self._offsets, self._rows, self._weights
        add_weights(number, weights.astype(np.float32), *index, scores)
        some = np.flatnonzero(scores)
        if len(some) > count:
            some = some[scores[some] >= np.partition(scores[some], -count)[-count]]
        return some[np.argsort(-scores[some], kind="stable")][:count]


def _grams(sentences: PackedSequences, stride: int) -> tuple[Integers, Integers]:
    """Return the words and the pairs of neighbours of sentences, as numbers, and whose they are.

    A word is its id; a pair is (first + 1) * stride + second. Unknown words are like no other.
    """
    ids = np.minimum(sentences.ids.astype(np.int64), stride - 1)
    row = np.repeat(np.arange(len(sentences)), np.diff(sentences.offsets))
    known = ids != UNKNOWN
    neighbours = (row[1:] == row[:-1]) & known[1:] & known[:-1]
    pairs = (ids[:-1] + 1) * stride + ids[1:]
    both = (ids[known], pairs[neighbours]), (row[known], row[1:][neighbours])
    return np.concatenate(both[0]), np.concatenate(both[1])


@compiled(floats="contracted")
def add_weights(
    grams: Integers,
    weights: Floats32,
    offsets: Integers,
    rows: Integers,
    of_rows: Floats32,
    scores: Floats32,
) -> None:
    """Add products of weights to the scores of the sentences that have some of the grams."""
    for number in range(len(grams)):
        gram, weight = grams[number], weights[number]
        for place in range(offsets[gram], offsets[gram + 1]):
            scores[rows[place]] += weight * of_rows[place]
