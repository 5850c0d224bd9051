"""Word and translation error rate, and sentence accuracy.

The statistics of a hypothesis are two counts, as in Moses' score files of WER: errors, and the
number that they are divided by. In a system that translates letters, words are letters, and the
word error rate is the character error rate.

The translation edit rate (Snover et al. 2006) is like the word error rate, with moves of phrases.
Its edits are counted by sacreBLEU, in 0.4 ms per hypothesis on Multi30k.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sacrebleu

from moses_feature.metrics.metric import Metric, Tokens, formula
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled

STATISTICS = 2
BACKGROUND = (1.0, 10.0)


class WordErrors:
    """The reference translations of one sentence; of several, that with the fewest errors counts.

    Errors are insertions, deletions and substitutions (Levenshtein 1966), counted against the words
    of the reference.
    """

    def __init__(self, references: Sequence[Tokens]) -> None:
        self._numbers: dict[bytes, int] = {}
        self._references = [self._numbered(reference) for reference in references]

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return errors and reference words (n, 2) of n hypotheses."""
        found = np.empty((len(hypotheses), STATISTICS), np.int64)
        for row, hypothesis in enumerate(hypotheses):
            words = self._numbered(hypothesis)
            found[row] = min(
                (_distance(words, reference), len(reference)) for reference in self._references
            )
        return found

    def _numbered(self, text: Tokens) -> Integers:
        numbers = self._numbers
        return np.array([numbers.setdefault(word, len(numbers)) for word in text], np.int64)


class SentenceErrors:
    """The reference translations of one sentence; a right hypothesis equals one of them."""

    def __init__(self, references: Sequence[Tokens]) -> None:
        self._references = {tuple(reference) for reference in references}

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return (n, 2): 1 for a wrong hypothesis, else 0; and 1."""
        wrong = [tuple(hypothesis) not in self._references for hypothesis in hypotheses]
        return np.array([[int(one), 1] for one in wrong], np.int64).reshape(-1, STATISTICS)


@compiled
def _distance(one: Integers, other: Integers) -> int:
    """Return the least number of insertions, deletions and substitutions."""
    row = np.arange(len(other) + 1)
    for i in range(len(one)):
        diagonal, row[0] = row[0], i + 1
        for j in range(len(other)):
            changed = diagonal + (one[i] != other[j])
            diagonal = row[j + 1]
            row[j + 1] = min(changed, row[j + 1] + 1, row[j] + 1)
    return int(row[len(other)])


class TerReferences:
    """The reference translations of one sentence.

    Of several, the one with the fewest edits counts, against their mean length. Both statistics
    are multiplied by the number of references, so that they are integers.
    """

    def __init__(self, references: Sequence[Tokens]) -> None:
        self._metric = sacrebleu.TER(case_sensitive=True)
        self._numbers: dict[bytes, int] = {}
        self._references = [self._written(reference) for reference in references]
        self._length = sum(map(len, references))

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return edits and reference words (n, 2) of n hypotheses."""
        found = np.empty((len(hypotheses), STATISTICS), np.int64)
        for row, hypothesis in enumerate(hypotheses):
            score = self._metric.sentence_score(self._written(hypothesis), self._references)
            found[row] = round(score.num_edits) * len(self._references), self._length
        return found

    def _written(self, text: Tokens) -> str:
        """Return a text of numbers, which no tokeniser splits."""
        numbers = self._numbers
        return " ".join(str(numbers.setdefault(word, len(numbers))) for word in text)


@formula
def _without_error(statistics: Floats) -> float:
    return float(1.0 - statistics[0] / max(statistics[1], 1.0))


WER = Metric("wer", "WER", WordErrors, BACKGROUND, _without_error, True, "case:mixed|tok:none")
TER = Metric("ter", "TER", TerReferences, BACKGROUND, _without_error, True, "case:mixed|tok:none")
ACCURACY = Metric(
    "accuracy",
    "accuracy",
    SentenceErrors,
    BACKGROUND,
    _without_error,
    is_error=False,
    describe="sentences that are a reference, case:mixed",
)
