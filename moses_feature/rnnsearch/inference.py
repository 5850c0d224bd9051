"""RNNsearch as a scorer of pairs; free of torch.

The targets of a source share its encoder and their common prefixes; many sources are encoded
together and share common beginnings and ends. A decoder state is determined by all words but the
last, so prefixes that differ only in their last word share the state, its alignment and its
context. A context is a mean of annotations, so its product with a matrix is the mean of their
products. These are computed once for each source word, as sums of the products of the forward and
the backward state.

Axes: P source positions of all sentences, N prefixes of as many words, M states of the decoder
before their last words, H hidden units, E embedding, A alignment units, S maxout units, V target
words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from moses_feature.networks.kernels import encoder_gates, encoder_state, softmax, sum_of, tanh
from moses_feature.networks.phrases import Level, Phrases, Step, prefix_levels, values_along
from moses_feature.networks.products import Matrix
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_softmax import WordSoftmax
from moses_feature.rnnsearch.settings import SearchSizes
from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.compiled import compiler

F = np.float32

_exact = compiler(nogil=True, fastmath={"contract"}, error_model="numpy")


@_exact
def align(
    queries: Floats32,
    keys: Floats32,
    weight: Floats32,
    source: Integers,
    offsets: Integers,
    alignments: Floats32,
) -> None:
    """Write the alignment of states: probabilities of the words of their source sentences.

    Args:
        queries: (n, A) W_a s and the bias.
        keys: (positions, A) U_a h of the annotations of all source sentences.
        weight: (A,) v_a.
        source: (n,) the source sentence of each state.
        offsets: (sources + 1,) where the annotations of each begin.
        alignments: (n, longest or more), overwritten up to the end of each sentence.
    """
    units = np.empty(len(weight), dtype=np.float32)
    for row in range(len(queries)):
        first, last = offsets[source[row]], offsets[source[row] + 1]
        query, own = queries[row], alignments[row, : last - first]
        for place in range(last - first):
            key = keys[first + place]
            for k in range(len(units)):
                units[k] = weight[k] * tanh(query[k] + key[k])
            own[place] = sum_of(units)
        softmax(own)


@_exact
def expect(
    alignments: Floats32,
    values: Floats32,
    source: Integers,
    offsets: Integers,
    contexts: Floats32,
) -> None:
    """Write the means (n, width) of values (positions, width) under alignments."""
    for row in range(len(contexts)):
        context, first = contexts[row], offsets[source[row]]
        context[:] = F(0.0)
        for place in range(offsets[source[row] + 1] - first):
            share, value = alignments[row, place], values[first + place]
            for k in range(len(context)):
                context[k] += share * value[k]


def states_along(
    phrases: Phrases, start: Floats32, step: Callable[[Integers, Floats32], None], end: bool
) -> tuple[Floats32, Integers]:
    """Return the states after each word of phrases, one for each distinct prefix.

    Args:
        phrases: phrases of word ids.
        start: (1, H) the state before the first word.
        step: replaces states (n, H) by those after words (n,).
        end: whether END is read after the words, too.

    Returns:
        States (distinct prefixes, H), and the row of each word (and END), phrase by phrase.
    """
    offsets = phrases.offsets + (np.arange(len(phrases) + 1) if end else 0)
    row_of = np.empty(offsets[-1], dtype=np.int64)
    state, found, count = start, [start[:0]], 0
    for position, level in enumerate(prefix_levels(phrases, np.zeros(len(phrases), np.int64))):
        read = level.grows | end
        state = state[level.parent[read]]
        step(level.word[read], state)
        found.append(state)
        has = read[level.edge_of_row]
        row_of_edge = count + np.cumsum(read) - 1
        row_of[offsets[level.rows[has]] + position] = row_of_edge[level.edge_of_row[has]]
        count += len(state)
        state = state[level.grows[read]]
    return np.concatenate(found), row_of


SIDES = "forward", "backward"

Ids = Sequence[int]


@dataclass(frozen=True)
class EncodedSources:
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


@dataclass(frozen=True)
class States:
    """States of the decoder, and their alignments.

    Attributes:
        states: (M, H).
        source: (M,) the source sentence of each.
        alignments: (M, longest source) up to the end of each source.
        contexts: (M, 3 H + 2 S) C_z c, C_r c, C c, then C_o c of the contexts c.
    """

    states: Floats32
    source: Integers
    alignments: Floats32
    contexts: Floats32


class SearchNetwork:
    """A network that scores pairs of ids: natural logs, END included.

    Args:
        sizes: layer sizes.
        weights: arrays by their names in `RnnSearch`.
        normalised: whether log Z is subtracted; if not (it is near 0 by training), no softmax is
            needed, which is half of the work.

    Attributes:
        sizes: the layer sizes.
        words: V.
        width: S.
        softmax: the output layer.
        target_embedding: (V, E).
        energy: (A,) v_a.
    """

    def __init__(
        self, sizes: SearchSizes, weights: Mapping[str, Floats32], normalised: bool = True
    ) -> None:
        self.sizes = sizes
        self._biases = {name: array for name, array in weights.items() if array.ndim == 1}
        matrices = {
            name.removesuffix(".weight"): array
            for name, array in weights.items()
            if array.ndim > 1 and "embedding" not in name
        }
        self.energy = matrices.pop("alignment_energy")[0]
        output = matrices.pop("output_words")  # (V, S)
        self.softmax = WordSoftmax(output, self._biases["output_words.bias"], normalised)
        of_values = "decoder_context", "maxout_context"
        values = np.vstack([matrices.pop(name) for name in of_values])
        for name, array in ("keys", matrices.pop("alignment_annotation")), ("values", values):
            for side, half in zip(SIDES, np.hsplit(array, 2), strict=True):
                matrices[f"{side}_{name}"] = half
        self._matrices = {name: Matrix(array.T) for name, array in matrices.items()}
        self._source_embedding = weights["source_embedding.weight"]
        self.target_embedding = weights["target_embedding.weight"]
        self.words, self.width = output.shape

    def word_log_probs(
        self,
        sources: Sequence[Ids],
        levels: Sequence[Level],
        offsets: Integers,
        run: Callable[..., Iterable[Any]] = map,
    ) -> Floats:
        """Return log p of every target word and END, pair after pair.

        Args:
            sources: the distinct sources.
            levels: the prefix trees of the targets, one root for each source.
            offsets: (pairs + 1,) where the words of each target begin, END counted.
            run: has the interface of `map`, perhaps with threads.
        """
        score = partial(self._score_some, sources)
        return values_along(levels, offsets, len(sources), score, run)

    def _score_some(self, sources: Sequence[Ids], some: slice, steps: Sequence[Step]) -> None:
        """Write log p of the edges below some roots."""
        inputs = Inputs(self, np.concatenate([step.word for step in steps]))
        mine = sources[some]
        read = self.encode(mine)
        state, last = np.arange(len(mine)), np.full(len(mine), END)
        states = self.align(read.start, state, read)
        for step in steps:
            features = self.features(states, state, inputs, last)
            step.found[:] = self.softmax.at(features, step.parent, step.word)
            grows = step.word != END
            going_on, state_of_next = np.unique(step.parent[grows], return_inverse=True)
            states = self.next_states(states, state[going_on], inputs, last[going_on], read)
            state, last = state_of_next, step.word[grows]

    def encode(self, sentences: Sequence[Ids]) -> EncodedSources:
        """Encode source sentences; common prefixes and suffixes are encoded once."""
        phrases = Phrases.pack(sentences)
        offsets = phrases.offsets + np.arange(len(phrases) + 1)
        distinct = np.union1d(phrases.ids.astype(np.int64), [END])
        embedded = self._source_embedding[distinct]

        def reader(side: str) -> Callable[[Integers, Floats32], None]:
            inputs = self.product(f"{side}_input", embedded)
            return lambda word, state: self._recur(
                side, inputs, np.searchsorted(distinct, word), state
            )

        zero = np.zeros((1, self.sizes.hidden), dtype=np.float32)
        forward, forward_row = states_along(phrases, zero, reader("forward"), end=True)
        read_backward, of_end = reader("backward"), zero.copy()
        read_backward(np.array([END]), of_end)
        mirrored = phrases.last_word_first()
        backward, row = states_along(mirrored, of_end, read_backward, end=False)
        backward = np.concatenate([of_end, backward])
        backward_row = np.zeros(offsets[-1], dtype=np.int64)  # of END
        is_word = np.ones(offsets[-1], dtype=np.bool_)
        is_word[offsets[1:] - 1] = False
        backward_row[is_word] = 1 + Phrases(row, phrases.offsets).last_word_first().ids
        keys, values = (
            self.product(f"forward_{name}", forward)[forward_row]
            + self.product(f"backward_{name}", backward)[backward_row]
            for name in ("keys", "values")
        )
        first = backward[backward_row[offsets[:-1]]]
        return EncodedSources(keys, values, offsets, np.tanh(self.product("decoder_start", first)))

    def align(self, states: Floats32, source: Integers, sources: EncodedSources) -> States:
        """Align states (M, H) with the sources (M,) that they read."""
        queries = self.product("alignment_state", states)
        longest = int(np.diff(sources.offsets).max())
        alignments = np.zeros((len(states), longest), dtype=np.float32)
        align(queries, sources.keys, self.energy, source, sources.offsets, alignments)
        contexts = np.empty((len(states), sources.values.shape[1]), dtype=np.float32)
        expect(alignments, sources.values, source, sources.offsets, contexts)
        return States(states, source, alignments, contexts)

    def features(self, states: States, state: Integers, inputs: Inputs, last: Integers) -> Floats32:
        """Return the inputs of the output layer (N, S) after prefixes.

        Args:
            states: all states.
            state: (N,) the state of each prefix.
            inputs: products of the words.
            last: (N,) the last words.
        """
        pieces = self.product("maxout_state", states.states)
        pieces += states.contexts[:, 3 * self.sizes.hidden :]
        of_prefix = pieces[state] + inputs.of_maxout[inputs.rows(last)]  # (N, 2 S)
        features: Floats32 = np.maximum(of_prefix[:, 0::2], of_prefix[:, 1::2])
        return features

    def next_states(
        self,
        states: States,
        state: Integers,
        inputs: Inputs,
        last: Integers,
        sources: EncodedSources,
    ) -> States:
        """Return the states (N) after prefixes, given by their states and last words."""
        after = states.states[state]
        of_words = inputs.of_state[inputs.rows(last)]
        of_words += states.contexts[state, : 3 * self.sizes.hidden]
        self._recur("decoder", of_words, np.arange(len(after)), after)
        return self.align(after, states.source[state], sources)

    def _recur(self, name: str, inputs: Floats32, word: Integers, state: Floats32) -> None:
        """Replace states (n, H) by those after words with rows of inputs."""
        gates = self.product(f"{name}_gates", state)
        reset = np.empty_like(state)
        encoder_gates(gates, inputs, word, state, reset)
        candidate = self.product(f"{name}_candidate", reset)
        encoder_state(gates, candidate, inputs, word, state)

    def panels(self, name: str) -> Floats32:
        """Return a matrix as `products.multiply` takes it."""
        return self._matrices[name].panels

    def bias(self, name: str) -> Floats32:
        """Return the bias of a layer."""
        return self._biases[f"{name}.bias"]

    def product(self, name: str, x: Floats32) -> Floats32:
        """Return the product of rows and a matrix, and its bias if it has one."""
        product = self._matrices[name].product(x)
        bias = self._biases.get(f"{name}.bias")
        if bias is not None:
            product += bias
        return product


class Inputs:
    """The products of the embeddings of some words, each computed once.

    Attributes:
        of_state: (words, 3 H) W_z e(y), W_r e(y), W e(y) and the biases.
        of_maxout: (words, 2 S) V_o e(y).
    """

    def __init__(self, network: SearchNetwork, ids: Integers) -> None:
        distinct = np.union1d(ids.astype(np.int64), [END])
        embedded = network.target_embedding[distinct]
        self._row = np.zeros(network.words, dtype=np.int64)
        self._row[distinct] = np.arange(len(distinct))
        self.of_state = network.product("decoder_input", embedded)
        self.of_maxout = network.product("maxout_input", embedded)

    def rows(self, words: Integers) -> Integers:
        """Return the rows of the products of words."""
        return self._row[words]
