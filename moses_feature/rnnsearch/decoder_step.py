"""A step of RNNsearch's decoder (Bahdanau et al. 2015, appendix A); free of torch.

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
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import compiled, helper

F = np.float32
NOT_KNOWN = -1
"""The row of a word without products."""


class Layers(NamedTuple):
    """The weights of a step: transposed matrices, and biases."""

    gates: Floats32
    candidate: Floats32
    alignment: Floats32
    alignment_bias: Floats32
    energy: Floats32
    maxout: Floats32
    maxout_bias: Floats32


class WordProducts(NamedTuple):
    """Products of target words' embeddings.

    Attributes:
        row: (V,) the row of each word, or `NOT_KNOWN`.
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


class States(NamedTuple):
    """States of the decoder, with what they read.

    Attributes:
        states: (M, H).
        source: (M,) the source sentence that each reads.
        alignments: (M, longest source) probabilities of the words of their source sentences; 0
            behind each.
        of_state: (M, 3 H) C_z c, C_r c, C c of their contexts c.
        of_maxout: (M, 2 S) U_o s and the bias, and C_o c.
    """

    states: Floats32
    source: Integers
    alignments: Floats32
    of_state: Floats32
    of_maxout: Floats32


def advance(
    before: States,
    state: Integers,
    words: WordProducts,
    last: Integers,
    layers: Layers,
    sources: EncodedSources,
) -> States:
    """Return the states (N) after prefixes.

    Args:
        before: the states before the last words.
        state: (N,) that of each prefix.
        words: products of the words.
        last: (N,) the last words.
        layers: the weights.
        sources: the source sentences.
    """
    new, rows = before.states[state], np.arange(len(state))
    inputs = words.of_state[words.row[last]] + before.of_state[state]
    gates, reset = new @ layers.gates, np.empty_like(new)
    encoder_gates(gates, inputs, rows, new, reset)
    encoder_state(gates, reset @ layers.candidate, inputs, rows, new)
    return attend(new, before.source[state], layers, sources)


def attend(states: Floats32, source: Integers, layers: Layers, sources: EncodedSources) -> States:
    """Return states (M, H) of source sentences (M,) with what they read."""
    longest = int(np.diff(sources.offsets).max(initial=0))
    alignments = np.zeros((len(states), longest), dtype=np.float32)
    contexts = np.empty((len(states), sources.values.shape[1]), dtype=np.float32)
    queries = states @ layers.alignment + layers.alignment_bias
    given = sources.keys, sources.values, sources.offsets, layers.energy
    _attend(queries, source, *given, alignments, contexts)
    width = 3 * states.shape[1]
    of_maxout = states @ layers.maxout + layers.maxout_bias + contexts[:, width:]
    return States(states, source, alignments, contexts[:, :width], of_maxout)


@compiled(floats="contracted")
def _attend(
    queries: Floats32,
    source: Integers,
    keys: Floats32,
    values: Floats32,
    offsets: Integers,
    energy: Floats32,
    alignments: Floats32,
    contexts: Floats32,
) -> None:
    """Write the alignments of queries (M, A), and the means of values under them."""
    units = np.empty_like(energy)
    for row in range(len(queries)):
        begin, behind = offsets[source[row]], offsets[source[row] + 1]
        own = alignments[row, : behind - begin]
        _align(queries[row], keys[begin:behind], energy, units, own)
        _expect(own, values[begin:behind], contexts[row])


@helper(floats="contracted")
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


@helper(floats="contracted")
def _expect(alignment: Floats32, values: Floats32, context: Floats32) -> None:
    """Write the mean (width,) of values (n, width) under an alignment (n,)."""
    context[:] = F(0.0)
    for place in range(len(alignment)):
        share, value = alignment[place], values[place]
        for k in range(len(context)):
            context[k] += share * value[k]


def output_states(states: States, state: Integers, words: WordProducts, last: Integers) -> Floats32:
    """Return the inputs of the output layer (N, S) after prefixes: maxout units.

    Args:
        states: the states before the last words.
        state: (N,) that of each prefix.
        words: products of the words.
        last: (N,) the last words.
    """
    pre_maxout = states.of_maxout[state] + words.of_maxout[words.row[last]]
    found: Floats32 = pre_maxout.reshape(len(state), -1, 2).max(axis=2)
    return found
