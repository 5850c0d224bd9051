"""Tuning on lattices (Macherey et al. 2008)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np

from mert.corpus import Corpus
from mert.decoders.decoder import LatticeDecoder
from mert.lattices.files import Vocabulary, read_lattices
from mert.lattices.lattice import Lattice, Lattices, together
from mert.lattices.lines import LatticeLines
from mert.lattices.paths import best_scores
from mert.lattices.strings import CountedStrings
from mert.lattices.union import union
from mert.optimisers.mert import Thrift, search_lines
from mert.optimisers.space import Optimum, SearchSpace
from mert.pools.evidence import Added
from mert.tuning_state import TuningSettings
from moses_feature.arrays import Floats, Integers
from moses_feature.metrics.metric import corpus_quality, metric
from moses_feature.moses.features import FeatureSet

THRIFT = Thrift(parts=10, finalists=3)
"""A line takes many times as long as on n-best lists."""
ROUNDING = 1e-4
"""Scores of features in float32 and of the search differ by less."""


class LatticeUnion:
    """The lattices of all iterations, joined sentence by sentence; see `Evidence`.

    Args:
        decoder: that makes them.
        corpus: the development set.
        settings: of the tuning run.
    """

    nothing_new = "no better translations than the lattices have"

    def __init__(self, decoder: LatticeDecoder, corpus: Corpus, settings: TuningSettings) -> None:
        self._decoder = decoder
        self._settings = settings
        self._names = decoder.features.names
        self._vocabulary = Vocabulary()
        of = metric(settings.metric)
        self._sentences = len(corpus)
        self._references = [of.references(references) for references in corpus.references]
        self._strings = CountedStrings(self._references, self._vocabulary.words, of.width)
        self._lattices: list[Lattice] = []

    def decode(self, features: FeatureSet, path: Path, report: Callable[[int], None]) -> None:
        """Write lattices."""
        self._decoder.write_lattices(features, path, report)

    def add(self, path: Path, weights: Floats) -> Added:
        """Join the lattices of a file with those that there are.

        New are the sentences whose best path is better than any that was there before.
        """
        found = list(read_lattices(path, self._vocabulary, len(self._names), self._sentences))
        of_found = _of_filled(found)
        before = self._best(self._all, weights) if self._lattices else -np.inf
        new = int((self._best(of_found, weights) > before + ROUNDING).sum())
        pairs = zip(self._lattices, found, strict=True) if self._lattices else ()
        self._lattices = [union(one, other) for one, other in pairs] or found
        self.__dict__.pop("_all", None)
        edges = sum(map(len, self._lattices))
        said = f"{new} sentences have a new best translation; {edges} phrases in lattices"
        return Added(new, edges, said, self._statistics(of_found, weights))

    @cached_property
    def _all(self) -> Lattices:
        return _of_filled(self._lattices)

    def _lines(self, lattices: Lattices) -> LatticeLines:
        return LatticeLines(lattices, self._strings)

    def _best(self, lattices: Lattices, weights: Floats) -> Floats:
        """Return the score (sentences,) of the best path of each sentence, -inf for none."""
        best = np.full(self._sentences, -np.inf)
        best[lattices.numbers] = best_scores(lattices, self._lines(lattices).scores(weights))
        return best

    def _statistics(self, lattices: Lattices, weights: Floats) -> Integers:
        """Return summed statistics (width,) of the best translations; no words where none is."""
        lines = self._lines(lattices)
        rows = lines.chosen(lines.scores(weights))
        total: Integers = self._strings.statistics()[rows].sum(axis=0, dtype=np.int64)
        for sentence in np.setdiff1d(np.arange(self._sentences), lattices.numbers).tolist():
            total += self._references[sentence].statistics([()])[0]
        return total

    def has_matches(self) -> bool:
        """Return whether a translation that some weights would choose matches its references."""
        lines = self._lines(self._all)
        for values in self._all.features.astype(np.float64):
            for scores in (values, -values):
                lines.chosen(scores)
        counted = self._strings.statistics().sum(axis=0, dtype=np.int64)
        return corpus_quality(counted) > 0.0

    def constants(self) -> list[str]:
        """Return the features that are the same for all paths of every sentence."""
        lattices, constant = self._all, []
        for name, values in zip(self._names, lattices.features.astype(np.float64), strict=True):
            spread = best_scores(lattices, values) + best_scores(lattices, -values)
            if np.abs(spread).max() < ROUNDING:
                constant.append(name)
        return constant

    def optimum(self, space: SearchSpace, seed: int) -> Optimum:
        """Return the weights that line search on all paths finds."""
        lines, settings = self._lines(self._all), self._settings
        return search_lines(
            lines, space, settings.restarts, settings.random_directions, seed, THRIFT
        )

    def write(self, directory: Path) -> None:
        """Write nothing: Moses' optimisers read no lattices of this form."""


def _of_filled(lattices: list[Lattice]) -> Lattices:
    """Return the lattices that have edges."""
    filled = [number for number, lattice in enumerate(lattices) if len(lattice)]
    return together([lattices[number] for number in filled], filled)
