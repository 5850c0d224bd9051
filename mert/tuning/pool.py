"""The hypothesis pool: all hypotheses found so far, without duplicates (Och 2003)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mert.optimisers.candidates import Candidates
from moses_feature.metrics.bleu import BLEU
from moses_feature.metrics.metric import Metric, ReferenceStatistics
from moses_feature.moses.nbest_lists import Hypothesis
from moses_feature.runtime.arrays import Integers

Tokens = Sequence[bytes]


class HypothesisPool:
    """The n-best lists of all iterations, merged.

    Args:
        references: the references of each sentence.
        names: the names of the features.
        metric: computes statistics of hypotheses against references.
    """

    def __init__(
        self,
        references: Sequence[Sequence[Tokens]],
        names: tuple[str, ...],
        metric: Metric = BLEU,
    ) -> None:
        self._metric = metric
        self._references: list[ReferenceStatistics] = [metric.references(r) for r in references]
        self._names = names
        self._seen: list[set[tuple[tuple[bytes, ...], bytes]]] = [set() for _ in references]
        self._features: list[list[np.ndarray]] = [[] for _ in references]
        self._statistics: list[list[Integers]] = [[] for _ in references]

    def add(self, lists: Iterable[Sequence[Hypothesis]]) -> tuple[int, Integers]:
        """Add the n-best list of every sentence.

        Returns:
            The number of hypotheses with new words or features; and (sentences, width) the
            statistics of the first hypothesis of each list, or of an empty translation if a list is
            empty.
        """
        added = 0
        one_best = np.empty((len(self._references), self._metric.width), dtype=np.int64)
        for sentence, hypotheses in enumerate(lists):
            new = self._new(sentence, hypotheses)
            first = hypotheses[0].words if hypotheses else ()
            references = self._references[sentence]
            statistics = references.statistics([first, *(h.words for h in new)])
            one_best[sentence] = statistics[0]
            if new:
                self._features[sentence].append(np.array([h.features for h in new]))
                self._statistics[sentence].append(statistics[1:])
                added += len(new)
        return added, one_best

    def _new(self, sentence: int, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        seen = self._seen[sentence]
        new = []
        for hypothesis in hypotheses:
            key = hypothesis.words, hypothesis.features.tobytes()
            if key not in seen:
                seen.add(key)
                new.append(hypothesis)
        return new

    @property
    def hypotheses(self) -> int:
        """The number of hypotheses."""
        return sum(len(part) for features in self._features for part in features)

    @property
    def sentences(self) -> int:
        """The number of sentences with hypotheses."""
        return sum(map(bool, self._features))

    def of_sentences_without_list(self) -> Integers:
        """Return summed statistics (width,) of empty translations, for sentences without any."""
        empty = [
            references.statistics([()])[0]
            for references, features in zip(self._references, self._features, strict=True)
            if not features
        ]
        total: Integers = np.sum([np.zeros(self._metric.width, dtype=np.int64), *empty], axis=0)
        return total

    def candidates(self) -> Candidates:
        """Return all hypotheses, sentence by sentence, without sentences that have none."""
        filled = [n for n, features in enumerate(self._features) if features]
        sizes = [sum(map(len, self._features[n])) for n in filled]
        return Candidates(
            np.concatenate([part for n in filled for part in self._features[n]]),
            np.concatenate([part for n in filled for part in self._statistics[n]]),
            np.concatenate([[0], np.cumsum(sizes)]),
            self._names,
            self._metric,
        )
