"""A step of RNNsearch's decoder (Bahdanau et al. 2015, appendix A), compiled; free of torch.

The state that predicts a word does not depend on that word: prefixes that differ in their last word
only share the state, its alignment and its context. A context is a mean of annotations, so its
product with a matrix is the mean of their products.

Axes: M states, N prefixes, P source positions of all sentences, H hidden units, A alignment units,
S maxout units, V target words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_feature.networks.kernels import encoder_gates, encoder_state, softmax, sum_of, tanh
from moses_feature.networks.products import multiply
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import exact

F = np.float32


class Layers(NamedTuple):
    """The weights of a step: panels of matrices (see `products.multiply`), and biases."""

    gates: Floats32
    candidate: Floats32
    alignment: Floats32
    alignment_bias: Floats32
    energy: Floats32
    maxout: Floats32
    maxout_bias: Floats32


class Words(NamedTuple):
    """Products of target words' embeddings.

    Attributes:
        row: (V,) the row of each word, or `trees.NOT_KNOWN`.
        of_state: (words, 3 H) W_z e(y), W_r e(y), W e(y) and the biases.
        of_maxout: (words, 2 S) V_o e(y).
    """

    row: Integers
    of_state: Floats32
    of_maxout: Floats32


class EncodedSources(NamedTuple):
    """Source sentences for the decoder: products of the annotations h.

    Attributes:
        keys: (P, A) U_a h.
        values: (P, 3 H + 2 S) C_z h, C_r h, C h, then C_o h.
        offsets: (sources + 1,) where the products of each sentence begin.
        start: (sources, H) the first states of the decoder.
    """

    keys: Floats32
    values: Floats32
    offsets: Integers
    start: Floats32

    def only(self, source: int) -> EncodedSources:
        """Return one of the sentences."""
        first, last = self.offsets[source : source + 2].tolist()
        offsets = np.array([0, last - first])
        own = self.start[source : source + 1]
        return EncodedSources(self.keys[first:last], self.values[first:last], offsets, own)


class States(NamedTuple):
    """States of the decoder, or room for them.

    Attributes:
        states: (M, H).
        source: (M,) the source sentence that each reads.
        of_state: (M, 3 H) C_z c, C_r c, C c of their contexts c.
        of_maxout: (M, 2 S) U_o s and the bias, and C_o c.
    """

    states: Floats32
    source: Integers
    of_state: Floats32
    of_maxout: Floats32


@exact
def go_on(
    before: States,
    state: Integers,
    words: Words,
    last: Integers,
    layers: Layers,
    after: States,
    first: int,
) -> None:
    """Write the states after prefixes; what they read is left to `look`.

    Args:
        before: the states before the last words.
        state: (N,) that of each prefix.
        words: products of the words.
        last: (N,) the last words.
        layers: the weights.
        after: room for the states, which may be that of `before`.
        first: where they begin there.
    """
    count, hidden = len(state), before.states.shape[1]
    inputs = np.empty((count, 3 * hidden), dtype=np.float32)
    new = after.states[first : first + count]
    for row in range(count):
        own = state[row]
        new[row] = before.states[own]
        after.source[first + row] = before.source[own]
        inputs[row] = words.of_state[words.row[last[row]]] + before.of_state[own]
    rows = np.arange(count)
    gates = np.empty((count, 2 * hidden), dtype=np.float32)
    candidate, reset = np.empty_like(new), np.empty_like(new)
    multiply(new, layers.gates, gates)
    encoder_gates(gates, inputs, rows, new, reset)
    multiply(reset, layers.candidate, candidate)
    encoder_state(gates, candidate, inputs, rows, new)


@exact
def look(states: States, first: int, end: int, layers: Layers, sources: EncodedSources) -> Floats32:
    """Align states with their source sentences, and compute what their contexts add.

    Args:
        states: all states, of which those from `first` on, before `end`, have none of it.
        first: the first of these.
        end: the one behind them.
        layers: the weights.
        sources: the source sentences.

    Returns:
        (these states, longest source) probabilities of the words of their source sentences; 0
        behind each.
    """
    count, longest = end - first, 0
    for source in range(len(sources.offsets) - 1):
        longest = max(longest, sources.offsets[source + 1] - sources.offsets[source])
    some, of_maxout = states.states[first:end], states.of_maxout[first:end]
    queries = np.empty((count, sources.keys.shape[1]), dtype=np.float32)
    multiply(some, layers.alignment, queries)
    multiply(some, layers.maxout, of_maxout)
    alignments = np.zeros((count, longest), dtype=np.float32)
    units = np.empty_like(layers.energy)
    context = np.empty(sources.values.shape[1], dtype=np.float32)
    width = states.of_state.shape[1]
    for row in range(count):
        queries[row] += layers.alignment_bias
        source = states.source[first + row]
        begin, behind = sources.offsets[source], sources.offsets[source + 1]
        own = alignments[row, : behind - begin]
        _align(queries[row], sources.keys[begin:behind], layers.energy, units, own)
        _expect(own, sources.values[begin:behind], context)
        states.of_state[first + row] = context[:width]
        for k in range(of_maxout.shape[1]):
            of_maxout[row, k] = of_maxout[row, k] + layers.maxout_bias[k] + context[width + k]
    return alignments


@exact
def _align(
    query: Floats32, keys: Floats32, energy: Floats32, units: Floats32, alignment: Floats32
) -> None:
    """Write the probabilities (n,) of source words with keys (n, A); `units` (A,) is room."""
    for place in range(len(keys)):
        key = keys[place]
        for k in range(len(units)):
            units[k] = energy[k] * tanh(query[k] + key[k])
        alignment[place] = sum_of(units)
    softmax(alignment)


@exact
def _expect(alignment: Floats32, values: Floats32, context: Floats32) -> None:
    """Write the mean (width,) of values (n, width) under an alignment (n,)."""
    context[:] = F(0.0)
    for place in range(len(alignment)):
        share, value = alignment[place], values[place]
        for k in range(len(context)):
            context[k] += share * value[k]


@exact
def features_of(states: States, state: Integers, words: Words, last: Integers) -> Floats32:
    """Return the inputs of the output layer (N, S) after prefixes: maxout units.

    Args:
        states: the states before the last words.
        state: (N,) that of each prefix.
        words: products of the words.
        last: (N,) the last words.
    """
    features = np.empty((len(state), states.of_maxout.shape[1] // 2), dtype=np.float32)
    for row in range(len(state)):
        of_state, own = states.of_maxout[state[row]], features[row]
        of_word = words.of_maxout[words.row[last[row]]]
        for k in range(len(own)):
            one = of_state[2 * k] + of_word[2 * k]
            other = of_state[2 * k + 1] + of_word[2 * k + 1]
            own[k] = max(one, other)
    return features
