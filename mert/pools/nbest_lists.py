"""Tuning on n-best lists (Och 2003)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mert.corpus import Corpus
from mert.decoders.decoder import Decoder
from mert.moses_files import write_candidates
from mert.nbest import read_nbest
from mert.optimisers.candidates import Candidates
from mert.optimisers.choice import optimizer
from mert.optimisers.space import Optimum, SearchSpace
from mert.pools.pool import Pool
from mert.tuning_state import TuningSettings
from moses_feature.arrays import Integers
from moses_feature.metrics.metric import metric
from moses_feature.moses.features import FeatureSet


class Added(NamedTuple):
    """What an iteration added.

    Attributes:
        new: hypotheses that no earlier iteration had found; 0 ends the tuning.
        total: hypotheses there are now.
        statistics: (width,) of the best translations of all sentences, summed.
    """

    new: int
    total: int
    statistics: Integers


class NbestLists:
    """The n-best lists of all iterations of a tuning run.

    Args:
        decoder: that makes them.
        corpus: the development set.
        settings: of the tuning run.
    """

    def __init__(self, decoder: Decoder, corpus: Corpus, settings: TuningSettings) -> None:
        self._decoder = decoder
        self._sentences = len(corpus)
        self._count = settings.n_best
        self._metric = metric(settings.metric)
        self._pool = Pool(corpus.references, decoder.features.names, self._metric)
        self._optimize = optimizer(
            settings.optimizer, settings.restarts, settings.random_directions
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
        """Return the features that are the same for all hypotheses of every sentence."""
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
            directory / "features.dat.gz",
            directory / "scores.dat.gz",
            self._all(),
            self._metric.label,
        )

    def _all(self) -> Candidates:
        if self._candidates is None:
            self._candidates = self._pool.candidates()
        return self._candidates
