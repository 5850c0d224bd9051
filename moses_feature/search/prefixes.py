"""Prefixes of translations that RNNsearch is writing, and what may come next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from moses_feature.arrays import Floats, Floats32, Integers
from moses_feature.models.vocabulary import END
from moses_feature.scoring.search_network import Ids, Inputs, SearchNetwork, Sources, States


class SearchPrefixes:
    """N prefixes of translations of some sentences.

    Args:
        network: that writes.
        sources: the sentences, read.
        states: the states before the last words, each once.
        state: (N,) the state of each prefix.
        last: (N,) the last words, END of an empty prefix.
    """

    def __init__(
        self,
        network: SearchNetwork,
        sources: Sources,
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
    def empty(cls, network: SearchNetwork, sentences: Sequence[Ids]) -> SearchPrefixes:
        """Return an empty prefix for each sentence, one at least."""
        sources, every = network.encode(sentences), np.arange(len(sentences))
        states = network.align(sources.start, every, sources)
        return cls(network, sources, states, every, np.full(len(sentences), END))

    @cached_property
    def _inputs(self) -> Inputs:
        return Inputs(self._network, self._last)

    @property
    def alignments(self) -> Floats32:
        """(N, longest sentence + 1) what the next word of each prefix is aligned to.

        Probabilities of the words of its sentence and END; 0 behind it.
        """
        return self._states.alignments[self._state]

    def log_probs(self) -> Floats:
        """Return log p (N, V) of each word, END included, after each prefix."""
        features = self._network.features(self._states, self._state, self._inputs, self._last)
        return self._network.all_log_probs(features)

    def best(self, count: int) -> tuple[Integers, Floats, Floats]:
        """Return the likeliest next words, END not among them, and log p of END.

        Returns:
            (N, count) words in any order, fewer if there are no more; (N, count) their log p; and
            (N,) that of END.
        """
        log_probs = self.log_probs()
        words = log_probs[:, END + 1 :]
        count = min(count, words.shape[1])
        best = np.argpartition(-words, count - 1, axis=1)[:, :count]
        return best + END + 1, np.take_along_axis(words, best, 1), log_probs[:, END]

    def grown(self, prefix: Integers, word: Integers) -> SearchPrefixes:
        """Return longer prefixes: some of these, and a word after each."""
        going_on, state = np.unique(prefix, return_inverse=True)
        states = self._network.next_states(
            self._states, self._state[going_on], self._inputs, self._last[going_on], self._sources
        )
        return SearchPrefixes(self._network, self._sources, states, state, word)
