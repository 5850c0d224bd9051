"""The union of two lattices of a sentence.

What is an edge in both is one edge: the same phrase for the same words of the source, with the same
values, behind the same node. The nodes that it leads to are the same, too, since nothing that
follows a phrase depends on the weights of the search. Nodes that share no edge when they are joined
stay two, and an edge that later leads to either is there twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mert.lattices.lattice import BEGINNING, Lattice
from moses_feature.arrays import Integers

Key = tuple[int, bytes, bytes, tuple[int, ...]]
"""Of an edge: its tail, span, values and words."""


def union(one: Lattice, other: Lattice) -> Lattice:
    """Return the lattice with the paths of both; all of them end in one last node."""
    if not len(one) or not len(other):
        return one if len(one) else other
    heads = np.repeat(np.arange(len(one.nodes) - 1), np.diff(one.nodes)).tolist()
    tails = one.tails.tolist()
    there = dict.fromkeys(zip(_keys(one, tails), heads, strict=True))
    head_of: dict[Key, int] = {}
    for key, head in there:
        head_of.setdefault(key, head)
    made = len(one.nodes) - 1
    last = made - 1
    node_of = {BEGINNING: BEGINNING}  # of a node of the other lattice, that of the union
    added = []
    for node, (begin, end) in enumerate(itertools.pairwise(other.nodes.tolist())):
        its_tails = [node_of[tail] for tail in other.tails[begin:end].tolist()]
        keys = list(_keys(other, its_tails, begin))
        head = last if end == len(other) else next((head_of[k] for k in keys if k in head_of), made)
        made = max(made, head + 1)
        node_of[node] = head
        for edge, key in enumerate(keys, begin):
            if (key, head) not in there:
                there[key, head] = None
                head_of.setdefault(key, head)
                added.append(edge)
                heads.append(head)
                tails.append(key[0])
    spans = np.concatenate([one.spans, other.spans[added]])
    number_of = _numbers(tails, heads, spans, last)
    order = np.argsort(number_of[heads], kind="stable")
    words = [*one.words, *(other.words[edge] for edge in added)]
    counts = np.bincount(number_of[heads], minlength=made)
    return Lattice(
        np.concatenate([one.features, other.features[added]])[order],
        number_of[tails][order].astype(np.int32),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        spans[order],
        [words[edge] for edge in order.tolist()],
    )


def _keys(lattice: Lattice, tails: Sequence[int], begin: int = 0) -> Iterator[Key]:
    """Yield the keys of edges with these tails, from one edge on."""
    for edge, tail in enumerate(tails, begin):
        span, values = lattice.spans[edge].tobytes(), lattice.features[edge].tobytes()
        yield tail, span, values, lattice.words[edge]


def _numbers(
    tails: Sequence[int], heads: Sequence[int], spans: NDArray[np.int32], last: int
) -> Integers:
    """Number nodes by how many source words are covered there, the last one behind all.

    Args:
        tails: (edges,) of edges; the first one into a node stands behind one into its tail.
        heads: (edges,)
        spans: (edges, 2)
        last: the last node.

    Returns:
        (nodes + 1,) the new number of each node; behind them that of the beginning, whose index
        is -1.
    """
    covered = {BEGINNING: 0}
    lengths = (spans[:, 1] - spans[:, 0] + 1).tolist()
    for tail, head, length in zip(tails, heads, lengths, strict=True):
        covered.setdefault(head, covered[tail] + length)
    del covered[BEGINNING]
    numbers = np.full(len(covered) + 1, BEGINNING, np.int64)
    in_order = sorted(covered, key=lambda node: (node == last, covered[node], node))
    numbers[in_order] = np.arange(len(in_order))
    return numbers
