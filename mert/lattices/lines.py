"""Line search on lattices (Macherey et al. 2008): that of `mert.optimisers`, on all paths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mert.lattices.lattice import BEGINNING, Lattices
from mert.lattices.paths import best_translations, envelopes
from mert.lattices.strings import CountedStrings
from mert.optimisers.line_search import Changes, Step, best_step, weighted
from moses_feature.arrays import Floats, Integers
from moses_feature.metrics.metric import corpus_quality

REACH = 1.0
"""How far a step goes at most; weights sum to 1."""


class LatticeLine(NamedTuple):
    """A direction through the weights.

    Attributes:
        slopes: (edges,) by how much the score of each edge grows with γ.
    """

    slopes: Floats


class LatticeLines:
    """Searches lines through the weights of the paths of lattices; see `mert.optimisers.mert`.

    Args:
        lattices: of sentences.
        strings: their translations that were counted so far.
    """

    def __init__(self, lattices: Lattices, strings: CountedStrings) -> None:
        self._lattices = lattices
        self._strings = strings

    def __len__(self) -> int:
        return len(self._lattices.numbers)

    def part(self, number: int, parts: int) -> LatticeLines:
        """Return those of every `parts`-th sentence, from a number on."""
        return LatticeLines(_some(self._lattices, number, parts), self._strings)

    def scores(self, weights: Floats) -> Floats:
        """Return the scores (edges,) of the edges under weights (d,)."""
        of_weights: Floats = weighted(self._lattices.features, weights)
        return of_weights

    def chosen(self, scores: Floats) -> Integers:
        """Return the rows of the best translations by scores (edges,)."""
        best = best_translations(self._lattices, scores)
        return self._strings.rows(best, self._lattices.numbers)

    def quality_of_rows(self, rows: Integers) -> float:
        """Return the quality, 0 to 1, of one translation (sentences,) of each sentence."""
        return corpus_quality(self._strings.statistics()[rows].sum(axis=0, dtype=np.int64))

    def line(self, direction: Floats) -> LatticeLine:
        """Return the line in a direction (d,)."""
        return LatticeLine(self.scores(direction))

    def along(
        self,
        scores: Floats,
        chosen: Integers,  # noqa: ARG002
        line: LatticeLine,
        lowest: float,
        highest: float,
    ) -> Step:
        """Search a line, up to `REACH`.

        Args:
            scores: (edges,) at γ = 0.
            chosen: rows of the best translations there.
            line: to search.
            lowest: smallest γ.
            highest: largest γ.
        """
        lowest, highest = max(lowest, -REACH), min(highest, REACH)
        found = envelopes(self._lattices, scores, line.slopes, lowest, highest)
        rows = self._strings.rows(found, self._lattices.numbers)
        first = found.of_sentence[:-1]
        later = np.ones(len(rows), np.bool_)
        later[first] = False
        after = np.flatnonzero(later)
        changes = Changes(found.begins[after], rows[after - 1], rows[after], rows[first])
        return best_step(changes, self._strings.statistics(), lowest, highest)


def _some(lattices: Lattices, number: int, parts: int) -> Lattices:
    """Return the lattices of every `parts`-th sentence, from a number on."""
    chosen = np.arange(number, len(lattices.numbers), parts)
    nodes, of_nodes = _ranges(lattices.sentences, chosen)
    edges, of_edges = _ranges(lattices.nodes, nodes)
    words, of_words = _ranges(lattices.word_offsets, edges)
    renumbered = np.full(len(lattices.nodes), BEGINNING, np.int32)
    renumbered[nodes] = np.arange(len(nodes))
    tails = lattices.tails[edges]
    return Lattices(
        np.ascontiguousarray(lattices.features[:, edges]),
        np.where(tails == BEGINNING, np.int32(BEGINNING), renumbered[tails]),
        of_edges,
        of_nodes,
        of_words,
        lattices.words[words],
        lattices.numbers[chosen],
    )


def _ranges(offsets: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Return the members of some ranges, one after the other, and where each range begins then."""
    sizes = offsets[chosen + 1] - offsets[chosen]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    members = np.arange(begins[-1]) + np.repeat(offsets[chosen] - begins[:-1], sizes)
    return members, begins
