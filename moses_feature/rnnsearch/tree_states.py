"""RNNsearch's decoder states at the nodes of a tree of prefixes.

A node is a word after its parent node; the children of a node share the state after it. States that
are asked for together, and those on the way to them, are computed together, parents first.
Compiled, free of torch.

Axes: M states, N nodes, H hidden units, S maxout units, V target words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.trees import NOT_KNOWN, Rows, Tree, missing_nodes, with_room, with_rows
from moses_feature.networks.vocabulary import END
from moses_feature.rnnsearch.decoder_step import (
    EncodedSources,
    Layers,
    States,
    Words,
    features_of,
    go_on,
    look,
)
from moses_feature.rnnsearch.inference import SearchNetwork
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import exact

FIRST_ROOM = 256


class TreeStates:
    """The states of a network at the nodes of a tree, for one source sentence at a time.

    Attributes:
        count: the number of states that are known.
    """

    def __init__(self, network: SearchNetwork) -> None:
        self._network = network
        self._words = network.products_of(np.array([END]))
        self._after: Rows = np.empty(0, dtype=np.int32)
        self._row: Rows = np.empty(0, dtype=np.int32)
        self.count = 0

    def add_words(self, words: Integers) -> None:
        """Compute what words (n,) add to states, unless it is known: words of nodes must be."""
        known = self._words
        new = np.unique(words[known.row[words] == NOT_KNOWN])
        if not len(new):
            return
        more = self._network.products_of(new)  # behind those of END, which is known
        known.row[new] = len(known.of_state) - 1 + more.row[new]
        self._words = Words(
            known.row,
            np.concatenate([known.of_state, more.of_state[1:]]),
            np.concatenate([known.of_maxout, more.of_maxout[1:]]),
        )

    def begin(self, source: EncodedSources) -> None:
        """Forget all states, and begin with that of a source sentence's roots."""
        self._source = source
        self._after.fill(NOT_KNOWN)
        self._states = self._network.room(FIRST_ROOM)
        self._states.states[0], self._states.source[0] = source.start[0], 0
        self.count = 1
        look(self._states, 0, 1, self._network.layers, source)

    def features(self, tree: Tree, nodes: Integers) -> tuple[Floats32, Integers]:
        """Return the inputs of the output layer (distinct nodes, S), and the row (n,) of each node.

        Args:
            tree: all nodes.
            nodes: (n,) nodes, all of the source sentence.
        """
        self._after, self._row = (with_rows(of, len(tree)) for of in (self._after, self._row))
        missing, ends = missing_nodes(tree, tree[nodes, 0].astype(np.int64), self._after)
        count = self.count + len(missing)
        states: list[Any] = [with_room(of, count) for of in self._states]
        self._states = States(*states)
        first = 0
        layers = self._network.layers
        for end in ends.tolist():
            level, known = missing[first:end], self.count
            follow(tree, level, self._after, self._words, layers, self._states, known)
            self.count += len(level)
            look(self._states, known, self.count, layers, self._source)
            first = end
        state, last, rows = distinct_nodes(tree, nodes, self._after, self._row)
        return features_of(self._states, state, self._words, last), rows


@exact
def follow(
    tree: Tree,
    nodes: NDArray[np.int32],
    after: Rows,
    words: Words,
    layers: Layers,
    states: States,
    first: int,
) -> None:
    """Write the states after nodes, whose own states are known, and number them from `first`."""
    state, last = np.empty(len(nodes), dtype=np.int64), np.empty(len(nodes), dtype=np.int64)
    for row in range(len(nodes)):
        state[row], last[row] = _read_node(tree, nodes[row], after)
        after[nodes[row]] = first + row
    go_on(states, state, words, last, layers, states, first)


@exact
def distinct_nodes(
    tree: Tree, nodes: Integers, after: Rows, row_of: Rows
) -> tuple[Integers, Integers, Integers]:
    """Return the state and the word of each distinct node, and the row (n,) of each node.

    `row_of` (all nodes or more,) is `NOT_KNOWN` everywhere, before and after.
    """
    state, last, rows = np.empty((3, len(nodes)), dtype=np.int64)
    distinct = 0
    for place, node in enumerate(nodes):
        if row_of[node] == NOT_KNOWN:
            row_of[node] = distinct
            state[distinct], last[distinct] = _read_node(tree, node, after)
            distinct += 1
        rows[place] = row_of[node]
    for node in nodes:
        row_of[node] = NOT_KNOWN
    return state[:distinct], last[:distinct], rows


@exact
def _read_node(tree: Tree, node: int, after: Rows) -> tuple[int, int]:
    """Return the state before the word of a node, and the word."""
    before = tree[node, 0]
    return (0 if before < 0 else after[before]), tree[node, 1]
