"""Corpus BLEU (Papineni et al. 2002) from sufficient statistics that add up over sentences.

The statistics of a hypothesis are nine counts, as in Moses' score files: (matches, n-grams) for
n = 1..4, then the length of the closest reference. The score is case-sensitive, on the tokens as
they are, without smoothing: sacreBLEU with `tokenize=none, smooth_method=none`, divided by 100.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

MAX_N = 4
STATISTICS = 2 * MAX_N + 1

Tokens = Sequence[bytes]
Integers = NDArray[np.int64]


class References:
    """The reference translations of one sentence, ready to be matched.

    An n-gram matches as often as in the reference that has it most often; of two references
    equally close in length, the shorter one counts.
    """

    def __init__(self, references: Sequence[Tokens]) -> None:
        self._numbers: dict[bytes, int] = {}
        self._lengths = np.array(sorted(len(reference) for reference in references))
        self._slots, self._most = _table(*self._flat(references), self._lengths.sum())

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return the nine counts (n, 9) of n hypotheses."""
        words, offsets = self._flat(hypotheses)
        counts: Integers = _statistics(words, offsets, self._slots, self._most, self._lengths)
        return counts

    def _flat(self, texts: Sequence[Tokens]) -> tuple[Integers, Integers]:
        """Return the words of all texts as numbers, and where each text begins."""
        numbers = self._numbers
        flat = [numbers.setdefault(word, len(numbers) + 1) for text in texts for word in text]
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return np.array(flat, dtype=np.int64), offsets


@njit(cache=True)
def _slot_of(slots, ngram):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return where an n-gram, given as a 64-bit hash, stands in a table, or may be put."""
    place = (ngram ^ (ngram >> 32)) & (len(slots) - 1)
    while slots[place] != 0 and slots[place] != ngram:
        place = (place + 1) & (len(slots) - 1)
    return place


@njit(cache=True)
def _longer(ngram, word):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the hash of an n-gram (0 if it is empty) and one more word."""
    mixed = (ngram ^ word) * -7046029254386353131
    mixed ^= mixed >> 29
    return mixed if mixed != 0 else 1


@njit(cache=True)
def _table(words, offsets, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the n-grams of texts, and how often the text with most of them has each."""
    size = 16
    while size < 2 * MAX_N * total:
        size *= 2
    slots = np.zeros(size, np.int64)
    most = np.zeros(size, np.int64)
    for text in range(len(offsets) - 1):
        count = np.zeros(size, np.int64)
        for start in range(offsets[text], offsets[text + 1]):
            ngram = 0
            for place in range(start, min(start + MAX_N, offsets[text + 1])):
                ngram = _longer(ngram, words[place])
                slot = _slot_of(slots, ngram)
                slots[slot] = ngram
                count[slot] += 1
                most[slot] = max(most[slot], count[slot])
    return slots, most


@njit(cache=True)
def _statistics(words, offsets, slots, most, lengths):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the counts of texts (n, 9); `lengths` of the references, ascending."""
    texts = len(offsets) - 1
    statistics = np.zeros((texts, STATISTICS), np.int64)
    for text in range(texts):
        count = np.zeros(len(slots), np.int64)
        for start in range(offsets[text], offsets[text + 1]):
            ngram = 0
            for place in range(start, min(start + MAX_N, offsets[text + 1])):
                ngram = _longer(ngram, words[place])
                slot = _slot_of(slots, ngram)
                if slots[slot] == ngram and count[slot] < most[slot]:
                    count[slot] += 1
                    statistics[text, 2 * (place - start)] += 1
        length = offsets[text + 1] - offsets[text]
        for n in range(MAX_N):
            statistics[text, 2 * n + 1] = max(0, length - n)
        closest = lengths[0]
        for other in lengths:
            if abs(other - length) < abs(closest - length):
                closest = other
        statistics[text, STATISTICS - 1] = closest
    return statistics


def corpus_bleu(statistics: NDArray[np.integer]) -> float:
    """Return BLEU, 0 to 1, of summed statistics (9,)."""
    matches, totals = statistics[0:-1:2].astype(float), statistics[1:-1:2].astype(float)
    if matches.min() <= 0:
        return 0.0
    length, reference = float(totals[0]), float(statistics[-1])
    log_penalty = min(0.0, 1.0 - reference / length)
    return float(np.exp(np.log(matches / totals).mean() + log_penalty))
