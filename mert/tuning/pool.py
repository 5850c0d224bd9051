"""The hypothesis pool: all hypotheses found so far, without duplicates (Och 2003)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mert.decoders.decoder import Decoder
from mert.optimisers.candidates import Candidates, Optimum, SearchSpace
from mert.optimisers.choice import optimizer
from mert.optimisers.moses_files import write_candidates
from mert.settings import TuningSettings
from mert.tuning.corpus import Corpus
from mert.tuning.state import FEATURES, SCORES
from moses_feature.metrics.metric import METRICS, Metric, ReferenceStatistics, metric
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.nbest_lists import Hypothesis, read_nbest
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
        metric: Metric = METRICS["bleu"],
    ) -> None:
        self._width = metric.width
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
        one_best = np.empty((len(self._references), self._width), dtype=np.int64)
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
        total: Integers = np.sum([np.zeros(self._width, dtype=np.int64), *empty], axis=0)
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
        )


class Added(NamedTuple):
    """The additions of an iteration.

    Attributes:
        new: hypotheses that no earlier iteration had found; 0 ends the tuning.
        total: the number of hypotheses now.
        statistics: (width,) of the best translations of all sentences, summed.
    """

    new: int
    total: int
    statistics: Integers


class NbestLists:
    """The n-best lists of all iterations of a tuning run.

    Args:
        decoder: makes the lists.
        corpus: the development set.
        settings: the settings of the tuning run.
    """

    def __init__(self, decoder: Decoder, corpus: Corpus, settings: TuningSettings) -> None:
        self._decoder = decoder
        self._sentences = len(corpus)
        self._count = settings.list_size
        self._metric = metric(settings.metric)
        self._pool = HypothesisPool(corpus.references, decoder.features.names, self._metric)
        self._optimize = optimizer(
            settings.algorithm, settings.restarts, settings.random_directions
        )
        self._candidates: Candidates | None = None

    def decode(self, features: FeatureSet, path: Path, report: Callable[[int], None]) -> None:
        """Write n-best lists."""
        self._decoder.write_nbest(features, self._count, path, report)

    def add(self, path: Path) -> Added:
        """Add the lists of a file."""
        lists = read_nbest(path, self._decoder.features, self._sentences)
        new, first = self._pool.add(lists)
        self._candidates = None
        return Added(new, self._pool.hypotheses, first.sum(axis=0))

    def has_matches(self) -> bool:
        """Return whether any hypothesis has a match in its references."""
        candidates = self._all()
        return candidates.quality_of(candidates.statistics[:, 0].astype(float)) > 0.0

    def constants(self) -> list[str]:
        """Return the features with the same value in all hypotheses of every sentence."""
        candidates = self._all()
        starts = candidates.offsets[:-1]
        spread = np.maximum.reduceat(candidates.features, starts) - np.minimum.reduceat(
            candidates.features, starts
        )
        return [candidates.names[column] for column in np.flatnonzero(spread.max(axis=0) == 0.0)]

    def optimum(self, space: SearchSpace, seed: int) -> Optimum:
        """Return the weights that the optimiser finds."""
        return self._optimize(self._all(), space, seed)

    def write(self, directory: Path) -> None:
        """Write feature and score files."""
        write_candidates(
            directory / FEATURES,
            directory / SCORES,
            self._all(),
            self._metric.label,
        )

    def _all(self) -> Candidates:
        if self._candidates is None:
            self._candidates = self._pool.candidates()
        return self._candidates
