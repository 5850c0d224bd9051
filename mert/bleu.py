"""Corpus BLEU (Papineni et al. 2002) from sufficient statistics that add up over sentences.

The statistics of a hypothesis are nine counts, as in Moses' score files: (matches, n-grams) for
n = 1..4, then the length of the closest reference. The score is case-sensitive, on the tokens as
they are, without smoothing: sacreBLEU with `tokenize=none, smooth_method=none`, divided by 100.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_N = 4
STATISTICS = 2 * MAX_N + 1

Tokens = Sequence[bytes]


class References:
    """The reference translations of one sentence, ready to be matched."""

    def __init__(self, references: Sequence[Tokens]) -> None:
        self._lengths = [len(reference) for reference in references]
        self._most: Counter[Tokens] = Counter()
        for reference in references:
            self._most |= _ngrams(reference)

    def statistics(self, hypothesis: Tokens) -> list[int]:
        """Return the nine counts of a hypothesis.

        An n-gram matches as often as in the reference that has it most often; of two references
        equally close in length, the shorter one counts.
        """
        ngrams = _ngrams(hypothesis)
        matches = [0] * MAX_N
        for ngram, count in ngrams.items():
            matches[len(ngram) - 1] += min(count, self._most[ngram])
        counts = []
        for n, matched in enumerate(matches):
            counts += [matched, max(0, len(hypothesis) - n)]
        length = len(hypothesis)
        return [*counts, min(self._lengths, key=lambda other: (abs(other - length), other))]


def _ngrams(tokens: Tokens) -> Counter[Tokens]:
    words = tuple(tokens)
    return Counter(
        words[start : start + n] for n in range(1, MAX_N + 1) for start in range(len(words) - n + 1)
    )


def corpus_bleu(statistics: NDArray[np.integer]) -> float:
    """Return BLEU, 0 to 1, of summed statistics (9,)."""
    matches, totals = statistics[0:-1:2].astype(float), statistics[1:-1:2].astype(float)
    if matches.min() <= 0:
        return 0.0
    length, reference = float(totals[0]), float(statistics[-1])
    log_penalty = min(0.0, 1.0 - reference / length)
    return float(np.exp(np.log(matches / totals).mean() + log_penalty))
