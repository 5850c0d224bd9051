"""RNNsearch as a writer of translations: its prefixes; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from moses_feature.networks.datastores import Datastores
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.generation.prefixes import Prefixes
from moses_feature.rnnsearch.decoder_step import (
    EncodedSources,
    States,
    Words,
    advance,
    output_states,
)
from moses_feature.rnnsearch.inference import Ids, RnnSearchNetwork
from moses_feature.runtime.arrays import Floats, Floats32, Integers


class RnnSearchPrefixes(Prefixes):
    """N prefixes of translations of some sentences.

    Args:
        network: the network.
        sources: the encoded sentences.
        states: the distinct states before the last words.
        state: (N,) the state of each prefix.
        last: (N,) the last words, END for an empty prefix.
        datastores: what is remembered for each sentence, if the network has a memory.
    """

    def __init__(
        self,
        network: RnnSearchNetwork,
        sources: EncodedSources,
        states: States,
        state: Integers,
        last: Integers,
        datastores: Datastores | None,
    ) -> None:
        self._network = network
        self._sources = sources
        self._states = states
        self._state = state
        self._last = last
        self._datastores = datastores

    @classmethod
    def empty(cls, network: RnnSearchNetwork, sentences: Sequence[Ids]) -> RnnSearchPrefixes:
        """Return an empty prefix for each sentence, one at least."""
        sources, every = network.encode(sentences), np.arange(len(sentences))
        last = np.full(len(sentences), END)
        states, datastores = network.first_states(sources), network.datastores(sentences)
        return cls(network, sources, states, every, last, datastores)

    @cached_property
    def _words(self) -> Words:
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
        datastores = self._datastores and self._datastores.of(self._states.source[self._state])
        return self._network.softmax.all(self.features, datastores)

    def grown(self, prefix: Integers, word: Integers) -> RnnSearchPrefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""
        continued, state = np.unique(prefix, return_inverse=True)
        of_prefixes = self._state[continued], self._words, self._last[continued]
        states = advance(self._states, *of_prefixes, self._network.layers, self._sources)
        return RnnSearchPrefixes(
            self._network, self._sources, states, state, word, self._datastores
        )
