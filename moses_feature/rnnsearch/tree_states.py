"""RNNsearch's decoder states (Bahdanau et al. 2015, appendix A) at the nodes of a tree of prefixes.

A node is a word after its parent node. The state that predicts a word does not depend on that word,
so the children of a node share the state after it, its alignment and its context. States that are
asked for together, and those on the way to them, are computed together, parents first. Compiled,
free of torch.

Axes: M states, N nodes, H hidden units, E embedding, A alignment units, S maxout units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.kernels import encoder_gates, encoder_state
from moses_feature.networks.products import multiply
from moses_feature.networks.vocabulary import END
from moses_feature.rnnsearch.inference import SearchNetwork, align, expect
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import compiler

FIRST_ROOM = 256
NOT_KNOWN = -1
"""The state after a node, or the row of a word, that is not computed."""

Tree = NDArray[np.int32]
"""(nodes, 2) of each node its parent, below 0 for a root, and the id of its word."""

_exact = compiler(nogil=True, fastmath={"contract"}, error_model="numpy")


class _Layers(NamedTuple):
    """The weights of a step: panels of matrices (see `products.multiply`), and biases."""

    gates: Floats32
    candidate: Floats32
    alignment: Floats32
    alignment_bias: Floats32
    energy: Floats32
    maxout: Floats32
    maxout_bias: Floats32


class _Words(NamedTuple):
    """Products of words' embeddings.

    Attributes:
        row: (V,) the row of each word, or `NOT_KNOWN`.
        of_state: (words, 3 H) W_z e(y), W_r e(y), W e(y) and the biases.
        of_maxout: (words, 2 S) V_o e(y).
    """

    row: Integers
    of_state: Floats32
    of_maxout: Floats32


class _States(NamedTuple):
    """States of the decoder for one source sentence.

    Attributes:
        states: (M, H).
        of_state: (M, 3 H) C_z c, C_r c, C c of their contexts c.
        of_maxout: (M, 2 S) U_o s and the bias, and C_o c.
    """

    states: Floats32
    of_state: Floats32
    of_maxout: Floats32


class TreeStates:
    """The states of a network at the nodes of a tree, for one source sentence at a time.

    Attributes:
        count: the number of states that are known.
    """

    def __init__(self, network: SearchNetwork) -> None:
        self._network = network
        self._layers = _Layers(
            network.panels("decoder_gates"),
            network.panels("decoder_candidate"),
            network.panels("alignment_state"),
            network.bias("alignment_state"),
            network.energy,
            network.panels("maxout_state"),
            network.bias("maxout_state"),
        )
        hidden, units = network.sizes.hidden, network.sizes.maxout
        self._widths = hidden, 3 * hidden, 2 * units
        row = np.full(network.words, NOT_KNOWN)
        self._words = _Words(row, _rows(0, 3 * hidden), _rows(0, 2 * units))
        self.add_words(np.array([END]))
        self._after = np.empty(0, dtype=np.int32)
        self._row = np.empty(0, dtype=np.int32)
        self.count = 0

    def add_words(self, words: Integers) -> None:
        """Compute what words (n,) add to states, unless it is known: words of nodes must be."""
        row, of_state, of_maxout = self._words
        new = np.unique(words[row[words] == NOT_KNOWN])
        if not len(new):
            return
        row[new] = len(of_state) + np.arange(len(new))
        embedded = self._network.target_embedding[new]
        self._words = _Words(
            row,
            np.concatenate([of_state, self._network.product("decoder_input", embedded)]),
            np.concatenate([of_maxout, self._network.product("maxout_input", embedded)]),
        )

    def begin(self, keys: Floats32, values: Floats32, start: Floats32) -> None:
        """Forget all states, and begin with that of a source sentence's roots.

        Args:
            keys: (positions, A) U_a h of its annotations h.
            values: (positions, 3 H + 2 S) C_z h, C_r h, C h, then C_o h.
            start: (H,) the first state.
        """
        self._keys, self._values = np.ascontiguousarray(keys), np.ascontiguousarray(values)
        self._after.fill(NOT_KNOWN)
        self._states = _States(*(_rows(FIRST_ROOM, width) for width in self._widths))
        self._states.states[0] = start
        self.count = 1
        look(self._states, 0, 1, self._layers, self._keys, self._values)

    def features(self, tree: Tree, nodes: Integers) -> tuple[Floats32, Integers]:
        """Return the inputs of the output layer (distinct nodes, S), and the row (n,) of each node.

        Args:
            tree: all nodes.
            nodes: (n,) nodes, all of the source sentence.
        """
        if len(tree) > len(self._after):
            more = np.full(2 * len(tree) - len(self._after), NOT_KNOWN, dtype=np.int32)
            self._after = np.concatenate([self._after, more])
            self._row = np.concatenate([self._row, more])
        missing, ends = missing_nodes(tree, nodes, self._after)
        self._make_room(self.count + len(missing))
        first = 0
        for end in ends.tolist():
            level, known = missing[first:end], self.count
            follow(tree, level, self._after, self._words, self._layers, self._states, known)
            self.count += len(level)
            look(self._states, known, self.count, self._layers, self._keys, self._values)
            first = end
        return features_of(tree, nodes, self._after, self._words, self._states, self._row)

    def _make_room(self, count: int) -> None:
        if count <= len(self._states.states):
            return
        grown = [_rows(2 * count, width) for width in self._widths]
        for new, old in zip(grown, self._states, strict=True):
            new[: self.count] = old[: self.count]
        self._states = _States(*grown)


def _rows(count: int, width: int) -> Floats32:
    return np.empty((count, width), dtype=np.float32)


@_exact
def missing_nodes(
    tree: Tree, nodes: Integers, after: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Integers]:
    """Return the nodes before others whose states are not known, parents first.

    Args:
        tree: all nodes.
        nodes: the others.
        after: (all nodes or more,) the state after each node, or `NOT_KNOWN`.

    Returns:
        The missing nodes, and where each level ends: nodes of a level have their parents on levels
        before it, or known.
    """
    found = np.empty(len(tree), dtype=np.int32)
    count = deepest = 0
    for node in nodes:
        begin, before = count, tree[node, 0]
        while before >= 0 and after[before] == NOT_KNOWN:
            found[count] = before
            count += 1
            before = tree[before, 0]
        level = -after[before] - 1 if before >= 0 and after[before] < NOT_KNOWN else 0
        for place in range(count - 1, begin - 1, -1):
            after[found[place]] = -level - 2  # until its state is computed
            level += 1
        deepest = max(deepest, level)
    ends = np.zeros(deepest + 1, dtype=np.int64)
    for place in range(count):
        ends[-after[found[place]] - 1] += 1
    ends = np.cumsum(ends)
    by_level, places = np.empty(count, dtype=np.int32), ends.copy()
    for place in range(count):
        level = -after[found[place]] - 2
        by_level[places[level]] = found[place]
        places[level] += 1
    return by_level, ends[1:]


@_exact
def follow(
    tree: Tree,
    nodes: NDArray[np.int32],
    after: NDArray[np.int32],
    words: _Words,
    layers: _Layers,
    states: _States,
    first: int,
) -> None:
    """Compute the states after nodes, whose own states are known, and number them from `first`."""
    count, hidden = len(nodes), states.states.shape[1]
    inputs = np.empty((count, 3 * hidden), dtype=np.float32)
    new = states.states[first : first + count]
    for row in range(count):
        before, word = tree[nodes[row], 0], tree[nodes[row], 1]
        state = 0 if before < 0 else after[before]
        after[nodes[row]] = first + row
        new[row] = states.states[state]
        inputs[row] = words.of_state[words.row[word]] + states.of_state[state]
    own = np.arange(count)
    gates = np.empty((count, 2 * hidden), dtype=np.float32)
    candidate, reset = np.empty_like(new), np.empty_like(new)
    multiply(new, layers.gates, gates)
    encoder_gates(gates, inputs, own, new, reset)
    multiply(reset, layers.candidate, candidate)
    encoder_state(gates, candidate, inputs, own, new)


@_exact
def look(
    states: _States, first: int, end: int, layers: _Layers, keys: Floats32, values: Floats32
) -> None:
    """Align states with the source sentence, and compute what their contexts add.

    Args:
        states: all states, of which those from `first` on, before `end`, have none of it.
        first: the first of these.
        end: the one behind them.
        layers: the weights.
        keys: (positions, A) U_a h.
        values: (positions, 3 H + 2 S) C_z h, C_r h, C h, then C_o h.
    """
    some, count = states.states[first:end], end - first
    queries = np.empty((count, keys.shape[1]), dtype=np.float32)
    multiply(some, layers.alignment, queries)
    of_maxout = states.of_maxout[first:end]
    multiply(some, layers.maxout, of_maxout)
    for row in range(count):
        queries[row] += layers.alignment_bias
        of_maxout[row] += layers.maxout_bias
    source, offsets = np.zeros(count, dtype=np.int64), np.array([0, len(keys)])
    alignments = np.empty((count, len(keys)), dtype=np.float32)
    align(queries, keys, layers.energy, source, offsets, alignments)
    contexts = np.empty((count, values.shape[1]), dtype=np.float32)
    expect(alignments, values, source, offsets, contexts)
    width = states.of_state.shape[1]
    for row in range(count):
        states.of_state[first + row] = contexts[row, :width]
        of_maxout[row] += contexts[row, width:]


@_exact
def features_of(
    tree: Tree,
    nodes: Integers,
    after: NDArray[np.int32],
    words: _Words,
    states: _States,
    row_of: NDArray[np.int32],
) -> tuple[Floats32, Integers]:
    """Return the maxout units (distinct nodes, S) at nodes, and the row (n,) of each node.

    `row_of` (all nodes or more,) is `NOT_KNOWN` everywhere, before and after.
    """
    rows, distinct = np.empty(len(nodes), dtype=np.int64), 0
    for place, node in enumerate(nodes):
        if row_of[node] == NOT_KNOWN:
            row_of[node] = distinct
            distinct += 1
        rows[place] = row_of[node]
    units = states.of_maxout.shape[1] // 2
    features = np.empty((distinct, units), dtype=np.float32)
    for place, node in enumerate(nodes):
        if row_of[node] != NOT_KNOWN:
            row_of[node] = NOT_KNOWN
            before, word = tree[node, 0], tree[node, 1]
            of_state = states.of_maxout[0 if before < 0 else after[before]]
            of_word, own = words.of_maxout[words.row[word]], features[rows[place]]
            for k in range(units):
                one = of_state[2 * k] + of_word[2 * k]
                other = of_state[2 * k + 1] + of_word[2 * k + 1]
                own[k] = max(one, other)
    return features, rows
