"""RNNsearch as a scorer of pairs and a writer of translations; free of torch.

The targets of a source share its encoder and their common prefixes; many sources are encoded
together and share common beginnings and ends. The products of the annotations are computed once for
each source word, as sums of the products of the forward and the backward state.

Axes: P source positions of all sentences, N prefixes of as many words, M states of the decoder
before their last words, H hidden units, E embedding, A alignment units, S maxout units, V target
words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from moses_feature.networks.kernels import encoder_gates, encoder_state
from moses_feature.networks.phrases import EdgesBelow, PackedSequences, prefix_levels
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_softmax import WordSoftmax
from moses_feature.phrases.generation.prefixes import Prefixes
from moses_feature.rnnsearch.decoder_step import (
    NOT_KNOWN,
    EncodedSources,
    Layers,
    States,
    WordProducts,
    advance,
    attend,
    output_states,
)
from moses_feature.rnnsearch.settings import RnnSearchSizes
from moses_feature.runtime.arrays import Floats, Floats32, Integers


def states_along(
    phrases: PackedSequences, start: Floats32, step: Callable[[Integers, Floats32], None], end: bool
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


class RnnSearchNetwork:
    """A network that scores pairs of ids: natural logs, END included.

    Args:
        sizes: layer sizes.
        weights: arrays by their names in `RnnSearch`.
        normalised: whether log Z is subtracted; if not (it is near 0 by training), no softmax is
            needed, which is half of the work.

    Attributes:
        sizes: the layer sizes.
        words: V.
        softmax: the output layer.
        target_embedding: (V, E).
        layers: the weights of the decoder's step.
    """

    def __init__(
        self, sizes: RnnSearchSizes, weights: Mapping[str, Floats32], normalised: bool = True
    ) -> None:
        self.sizes = sizes
        self._biases = {name: array for name, array in weights.items() if array.ndim == 1}
        matrices = {
            name.removesuffix(".weight"): array
            for name, array in weights.items()
            if array.ndim > 1 and "embedding" not in name
        }
        energy = matrices.pop("alignment_energy")[0]
        output = matrices.pop("output_words")  # (V, S)
        self.softmax = WordSoftmax(output, self._biases["output_words.bias"], normalised)
        of_values = "decoder_context", "maxout_context"
        values = np.vstack([matrices.pop(name) for name in of_values])
        for name, array in ("keys", matrices.pop("alignment_annotation")), ("values", values):
            for side, half in zip(SIDES, np.hsplit(array, 2), strict=True):
                matrices[f"{side}_{name}"] = half
        self._matrices = {name: np.ascontiguousarray(array.T) for name, array in matrices.items()}
        self.layers = Layers(
            self._matrices["decoder_gates"],
            self._matrices["decoder_candidate"],
            self._matrices["alignment_state"],
            self._biases["alignment_state.bias"],
            energy,
            self._matrices["maxout_state"],
            self._biases["maxout_state.bias"],
        )
        self._source_embedding = weights["source_embedding.weight"]
        self.target_embedding = weights["target_embedding.weight"]
        self.words = len(output)

    def score(self, sources: Sequence[Ids], steps: Sequence[EdgesBelow]) -> None:
        """Write log p of the edges below some sources; see `values_along`."""
        words = self.products_of(np.concatenate([step.word for step in steps]))
        read = self.encode(sources)
        state, last = np.arange(len(sources)), np.full(len(sources), END)
        states = self.first_states(read)
        for step in steps:
            features = output_states(states, state, words, last)
            step.found[:] = self.softmax.at(features, step.parent, step.word)
            grows = step.word != END
            continued, state_of_next = np.unique(step.parent[grows], return_inverse=True)
            before = state[continued], words, last[continued]
            states = advance(states, *before, self.layers, read)
            state, last = state_of_next, step.word[grows]

    def encode(self, sentences: Sequence[Ids]) -> EncodedSources:
        """Encode source sentences; common prefixes and suffixes are encoded once."""
        phrases = PackedSequences.pack(sentences)
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
        backward_row[is_word] = 1 + PackedSequences(row, phrases.offsets).last_word_first().ids
        keys, values = (
            self.product(f"forward_{name}", forward)[forward_row]
            + self.product(f"backward_{name}", backward)[backward_row]
            for name in ("keys", "values")
        )
        first = backward[backward_row[offsets[:-1]]]
        return EncodedSources(keys, values, offsets, np.tanh(self.product("decoder_start", first)))

    def first_states(self, sources: EncodedSources) -> States:
        """Return the states before the first words."""
        return attend(sources.start, np.arange(len(sources.start)), self.layers, sources)

    def products_of(self, words: Integers) -> WordProducts:
        """Return the products of some words, each computed once, and those of END."""
        distinct = np.union1d(words.astype(np.int64), [END])
        row = np.full(self.words, NOT_KNOWN)
        row[distinct] = np.arange(len(distinct))
        embedded = self.target_embedding[distinct]
        names = "decoder_input", "maxout_input"
        return WordProducts(row, *(self.product(name, embedded) for name in names))

    def _recur(self, name: str, inputs: Floats32, word: Integers, state: Floats32) -> None:
        """Replace states (n, H) by those after words with rows of inputs."""
        gates = self.product(f"{name}_gates", state)
        reset = np.empty_like(state)
        encoder_gates(gates, inputs, word, state, reset)
        candidate = self.product(f"{name}_candidate", reset)
        encoder_state(gates, candidate, inputs, word, state)

    def product(self, name: str, x: Floats32) -> Floats32:
        """Return the product of rows and a matrix, and its bias if it has one."""
        product: Floats32 = x @ self._matrices[name]
        bias = self._biases.get(f"{name}.bias")
        if bias is not None:
            product += bias
        return product


class RnnSearchPrefixes(Prefixes):
    """N prefixes of translations of some sentences.

    Args:
        network: the network.
        sources: the encoded sentences.
        states: the distinct states before the last words.
        state: (N,) the state of each prefix.
        last: (N,) the last words, END for an empty prefix.
    """

    def __init__(
        self,
        network: RnnSearchNetwork,
        sources: EncodedSources,
        states: States,
        state: Integers,
        last: Integers,
    ) -> None:
        self._network = network
        self._sources = sources
        self._states = states
        self._state = state
        self._last = last

    @classmethod
    def empty(cls, network: RnnSearchNetwork, sentences: Sequence[Ids]) -> RnnSearchPrefixes:
        """Return an empty prefix for each sentence, one at least."""
        sources, every = network.encode(sentences), np.arange(len(sentences))
        last = np.full(len(sentences), END)
        return cls(network, sources, network.first_states(sources), every, last)

    @cached_property
    def _words(self) -> WordProducts:
        return self._network.products_of(self._last)

    @property
    def alignments(self) -> Floats32:
        """(N, longest sentence + 1) alignment of the next word of each prefix.

        Probabilities of the words of its sentence and END; 0 behind END.
        """
        return self._states.alignments[self._state]

    @cached_property
    def features(self) -> Floats32:
        """(N, S) the inputs of the output layer."""
        return output_states(self._states, self._state, self._words, self._last)

    def log_probs(self) -> Floats:
        """Return log p (N, V) of each word, END included, after each prefix."""
        return self._network.softmax.all(self.features)

    def grown(self, prefix: Integers, word: Integers) -> RnnSearchPrefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""
        continued, state = np.unique(prefix, return_inverse=True)
        of_prefixes = self._state[continued], self._words, self._last[continued]
        states = advance(self._states, *of_prefixes, self._network.layers, self._sources)
        return RnnSearchPrefixes(self._network, self._sources, states, state, word)
