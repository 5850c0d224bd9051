"""Corpus BLEU (Papineni et al. 2002) from sufficient statistics that add up over sentences.

The statistics of a hypothesis are nine counts, as in Moses' score files: (matches, n-grams) for
n = 1..4, then the length of the closest reference. The score is case-sensitive, on the tokens as
they are, without smoothing: sacreBLEU with `tokenize=none, smooth_method=none`, divided by 100.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moses_feature.metrics.metric import Metric, Tokens, formula
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import INT_0, compiled, helper
from moses_feature.runtime.hash_table import mixed, place_of, size_for

MAX_N = 4
STATISTICS = 2 * MAX_N + 1


class References:
    """The reference translations of one sentence, prepared for matching.

    An n-gram matches as often as it occurs in the reference that has it most often; of two
    references equally close in length, the shorter one counts.
    """

    def __init__(self, references: Sequence[Tokens]) -> None:
        self._numbers: dict[bytes, int] = {}
        self._lengths = np.array(sorted(len(reference) for reference in references))
        self._hashes, self._most = _table(*self._flat(references), self._lengths.sum(), MAX_N)

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return the nine counts (n, 9) of n hypotheses."""
        words, offsets = self._flat(hypotheses)
        counts = np.empty((len(hypotheses), STATISTICS), np.int64)
        counts[:, :-1] = _matches(words, offsets, self._hashes, self._most, MAX_N)
        counts[:, -1] = _closest(np.diff(offsets), self._lengths)
        return counts

    def _flat(self, texts: Sequence[Tokens]) -> tuple[Integers, Integers]:
        """Return the words of all texts as numbers, and where each text begins."""
        numbers = self._numbers
        flat = [numbers.setdefault(word, len(numbers) + 1) for text in texts for word in text]
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return np.array(flat, dtype=np.int64), offsets


def matches(texts: Sequence[Integers], references: Sequence[Integers], most_n: int) -> Integers:
    """Return matches and n-grams (texts, 2 most_n) of texts of numbers above 0, n by n."""
    (known, its_offsets), (words, offsets) = _joined(references), _joined(texts)
    hashes, most = _table(known, its_offsets, len(known), most_n)
    found: Integers = _matches(words, offsets, hashes, most, most_n)
    return found


def _joined(texts: Sequence[Integers]) -> tuple[Integers, Integers]:
    """Return the numbers of all texts, and where each text begins."""
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return np.concatenate([*texts, np.zeros(0, np.int64)]), offsets


@compiled
def _table(
    words: Integers, offsets: Integers, total: int, most_n: int
) -> tuple[Integers, Integers]:
    """Make a hash table of the n-grams of texts.

    Args:
        words: (total,) the words of all texts.
        offsets: (texts + 1,) where each text begins.
        total: the number of words.
        most_n: words of the longest n-grams.

    Returns:
        Hashes of n-grams, and the largest count of each in one text.
    """
    hashes = np.zeros(size_for(most_n * total), np.int64)
    most = np.zeros(len(hashes), np.int64)
    for text in range(len(offsets) - 1):
        count = np.zeros(len(hashes), np.int64)
        for start in range(offsets[text], offsets[text + 1]):
            ngram = INT_0
            for place in range(start, min(start + most_n, offsets[text + 1])):
                ngram = _longer(ngram, words[place])
                slot = place_of(hashes, ngram)
                hashes[slot] = ngram
                count[slot] += 1
                most[slot] = max(most[slot], count[slot])
    return hashes, most


@compiled
def _matches(
    words: Integers, offsets: Integers, hashes: Integers, most: Integers, most_n: int
) -> Integers:
    """Return matches and n-grams (texts, 2 most_n) of texts, n by n.

    Args:
        words: the words of all texts.
        offsets: (texts + 1,) where each text begins.
        hashes: hashes of the references' n-grams; see `_table`.
        most: the largest count of each in one reference.
        most_n: words of the longest n-grams.
    """
    texts = len(offsets) - 1
    statistics = np.zeros((texts, 2 * most_n), np.int64)
    for text in range(texts):
        count = np.zeros(len(hashes), np.int64)
        for start in range(offsets[text], offsets[text + 1]):
            ngram = INT_0
            for place in range(start, min(start + most_n, offsets[text + 1])):
                ngram = _longer(ngram, words[place])
                slot = place_of(hashes, ngram)
                if hashes[slot] == ngram and count[slot] < most[slot]:
                    count[slot] += 1
                    statistics[text, 2 * (place - start)] += 1
        length = offsets[text + 1] - offsets[text]
        for n in range(most_n):
            statistics[text, 2 * n + 1] = max(0, length - n)
    return statistics


@compiled
def _closest(lengths: Integers, references: Integers) -> Integers:
    """Return the length of the reference closest to each length; `references` ascend."""
    found = np.empty(len(lengths), np.int64)
    for text in range(len(lengths)):
        closest = references[0]
        for other in references:
            if abs(other - lengths[text]) < abs(closest - lengths[text]):
                closest = other
        found[text] = closest
    return found


@helper
def _longer(ngram: int, word: int) -> int:
    """Return the hash of an n-gram (0 if it is empty) extended by a word."""
    hashed = mixed(ngram, word)
    return hashed if hashed != 0 else 1


@formula
def _bleu(statistics: Floats) -> float:
    matches = totals = 1.0
    for column in range(0, STATISTICS - 1, 2):
        if statistics[column] <= 0.0:
            return 0.0
        matches *= statistics[column]
        totals *= statistics[column + 1]
    precision = np.sqrt(np.sqrt(matches / totals))  # faster than a power; MAX_N is 4
    too_short = statistics[STATISTICS - 1] / statistics[1]
    return float(precision * np.exp(1.0 - too_short) if too_short > 1.0 else precision)


def sentence_bleu(statistics: NDArray[np.number]) -> Floats:
    """Return BLEU, 0 to 1, of single sentences (n,) from their statistics (n, 9).

    One is added to the counts of n-grams of two words and more (Lin and Och 2004).
    """
    counts = statistics.astype(np.float64)
    matches, totals = counts[:, 0:-1:2], counts[:, 1::2]
    added = np.arange(MAX_N) > 0
    with np.errstate(divide="ignore"):
        precisions = np.log((matches + added) / np.maximum(totals + added, 1))
    short = np.minimum(1 - counts[:, -1] / np.maximum(totals[:, 0], 1e-9), 0)
    found: Floats = np.exp(precisions.mean(axis=1) + short)
    return found


BLEU = Metric(
    "bleu",
    "BLEU",
    References,
    (4.0, 4.0, 3.0, 3.0, 2.0, 2.0, 1.0, 1.0, 4.0),
    _bleu,
    is_error=False,
    describe="case:mixed|eff:no|tok:none|smooth:none",
    smoothed=sentence_bleu,
)
