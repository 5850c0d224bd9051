"""Lattices: all translations of sentences that a search has looked at, as graphs of phrases.

An edge is a phrase, with the feature values that it adds to whatever path comes before it; a node
is where paths meet that nothing which follows can tell apart. A path from the beginning to the last
node is a translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.arrays import Floats32, Integers

BEGINNING = -1
"""The tail of edges that begin a translation."""


@dataclass(frozen=True)
class Lattice:
    """The lattice of one sentence; without edges where nothing was found.

    Attributes:
        features: (edges, d) that each edge adds, natural logs or minus counts.
        tails: (edges,) the node that each begins at, or `BEGINNING`.
        nodes: (nodes + 1,) where the edges into each node begin, and the end; a node stands behind
            those that its edges begin at. All paths end in the last one.
        spans: (edges, 2) the first and the last source word that each covers.
        words: of each edge, numbers of its target words.
    """

    features: Floats32
    tails: NDArray[np.int32]
    nodes: NDArray[np.int32]
    spans: NDArray[np.int32]
    words: Sequence[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.tails)

    @classmethod
    def nothing(cls, features: int) -> Lattice:
        """Return the lattice of a sentence for which nothing was found."""
        numbers = np.zeros(0, np.int32)
        spans = np.zeros((0, 2), np.int32)
        return cls(np.zeros((0, features), np.float32), numbers, np.zeros(1, np.int32), spans, [])


class Lattices(NamedTuple):
    """Lattices of several sentences, for compiled code; the fields are those of `Lattice`.

    Attributes:
        features: (d, edges) of the edges of all sentences.
        tails: (edges,) nodes, counted over all sentences, or `BEGINNING`.
        nodes: (nodes + 1,) where the edges into each node begin, and the end.
        sentences: (sentences + 1,) where the nodes of each sentence begin, and the end.
        word_offsets: (edges + 1,) where the words of each edge begin, and the end.
        words: numbers of the words of all edges.
        numbers: (sentences,) of the sentences in their text.
    """

    features: Floats32
    tails: NDArray[np.int32]
    nodes: Integers
    sentences: Integers
    word_offsets: Integers
    words: NDArray[np.int32]
    numbers: Integers


def together(lattices: Sequence[Lattice], numbers: Sequence[int]) -> Lattices:
    """Return lattices of sentences with these numbers in one; none of them is without edges."""
    edges = np.cumsum([0, *map(len, lattices)])
    nodes = np.cumsum([0, *(len(lattice.nodes) - 1 for lattice in lattices)])
    tails = [
        np.where(lattice.tails == BEGINNING, BEGINNING, lattice.tails + first)
        for lattice, first in zip(lattices, nodes.tolist(), strict=False)
    ]
    begins = [
        lattice.nodes[:-1].astype(np.int64) + first
        for lattice, first in zip(lattices, edges.tolist(), strict=False)
    ]
    lengths = [len(words) for lattice in lattices for words in lattice.words]
    flat = [word for lattice in lattices for words in lattice.words for word in words]
    features = np.concatenate([lattice.features for lattice in lattices])
    return Lattices(
        np.ascontiguousarray(features.T),
        np.concatenate(tails).astype(np.int32),
        np.concatenate([*begins, edges[-1:]]),
        nodes,
        np.cumsum([0, *lengths]),
        np.array(flat, dtype=np.int32),
        np.array(numbers, dtype=np.int64),
    )
