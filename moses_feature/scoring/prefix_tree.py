"""The distinct prefixes of many phrases, level by level, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moses_feature.arrays import Integers
from moses_feature.models.phrases import Phrases
from moses_feature.models.vocabulary import END


@dataclass(frozen=True)
class Level:
    """The edges from the prefixes of t words (nodes) to those of t + 1 words.

    An edge with the word END ends a phrase; the others lead, in their order, to the nodes of the
    next level.

    Attributes:
        rows: (n,) the phrases that have a word, or their END, at this position.
        edge_of_row: (n,) the edge that each of them takes.
        parent: (edges,) the node that each edge leaves, ascending.
        word: (edges,) its word, ascending for each parent.
    """

    rows: Integers
    edge_of_row: Integers
    parent: Integers
    word: Integers

    @property
    def grows(self) -> NDArray[np.bool_]:
        """(edges,) 1 where an edge leads on, 0 where it ends a phrase."""
        grows: NDArray[np.bool_] = self.word != END
        return grows


def prefix_levels(phrases: Phrases, roots: Integers) -> Iterator[Level]:
    """Yield the levels of the prefix tree of phrases, END included.

    Phrases with the same root share their prefixes. The roots, numbered from 0 without gaps, are
    the nodes of the first level.
    """
    lengths = np.diff(phrases.offsets)
    starts = phrases.offsets[:-1]
    stride = int(phrases.ids.max(initial=END)) + 1
    node = roots.astype(np.int64)
    rows = np.arange(len(phrases))
    for position in range(int(lengths.max(initial=-1)) + 1):
        rows = rows[lengths[rows] >= position]
        words = np.full(len(rows), END, dtype=np.int64)
        inside = lengths[rows] > position
        words[inside] = phrases.ids[starts[rows[inside]] + position]
        keys, edge_of_row = np.unique(node[rows] * stride + words, return_inverse=True)
        level = Level(rows, edge_of_row, keys // stride, keys % stride)
        node[rows] = (np.cumsum(level.grows) - 1)[edge_of_row]
        yield level


def phrases_of(levels: Sequence[Level]) -> list[tuple[int, ...]]:
    """Return the distinct phrases of a tree with one root, in the order in which they end."""
    phrases = []
    nodes: list[tuple[int, ...]] = [()]
    for level in levels:
        longer = []
        for parent, word in zip(level.parent.tolist(), level.word.tolist(), strict=True):
            if word == END:
                phrases.append(nodes[parent])
            else:
                longer.append((*nodes[parent], word))
        nodes = longer
    return phrases
