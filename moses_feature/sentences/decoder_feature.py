"""RNNsearch as a decoder feature: log p(next word | prefix, source), batched.

The prefixes of translations are the nodes of a tree: a node is a word after its parent node; each
sentence has one root. The decoder state that predicts a word does not depend on that word, so the
children of a node share their state, its alignment and context
(`moses_feature.rnnsearch.inference`). States are cached for the current sentence; states that are
requested together, and those on the paths from the root, are computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.architectures import RNNSEARCH
from moses_feature.networks.direction import FORWARD
from moses_feature.networks.pieces import PieceVocabulary
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.table_words import TableWords
from moses_feature.rnnsearch.inference import EncodedSources, Inputs, SearchNetwork, States
from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.sentences.scorer import SentenceModel

MOST_STATES = 1 << 15
"""The most states of a sentence that are kept, at 5 kB each with `small`."""
NO_STATE = -1
DEFAULT_HISTORY = 4
"""Hypotheses recombine if this many of their last words are the same."""


def root_of(sentence: int) -> int:
    """Return the number that stands for the parent of a sentence's root."""
    return -1 - sentence


class RnnSearchFeature:
    """Scores words after the nodes of a tree: natural logs of p(word | prefix, source).

    Attributes:
        source, target: words and ids.
        words: how tokens become words.
        end: the id of the end of a sentence.

    Args:
        directory: the model directory.

    Raises:
        MosesFeatureError: the model cannot be read, or does not write the target from left to
            right.
    """

    def __init__(self, directory: Path) -> None:
        scorer = SentenceModel(directory)
        if scorer.architecture != RNNSEARCH or isinstance(scorer.target, PieceVocabulary):
            found = "a Transformer" if scorer.architecture != RNNSEARCH else "one of subwords"
            raise MosesFeatureError(
                f"{directory}: expected an RNNsearch of whole words in a search, found {found}: "
                "rescore n-best lists with it"
            )
        if scorer.direction != FORWARD:
            raise MosesFeatureError(
                f"{directory}: expected a network of {FORWARD} in a search, found one of "
                f"{scorer.direction}: rescore n-best lists with it"
            )
        self.end = END
        self.source, self.target = scorer.source, scorer.target
        self.words = TableWords().words(scorer)
        self._network: SearchNetwork = scorer.network
        self._sentences: list[list[int]] = []
        self.forget()

    def read(self, sentences: Sequence[Sequence[bytes]]) -> None:
        """Replace the source text."""
        pairs = (self.words.pair(b" ".join(sentence), b"") for sentence in sentences)
        self._sentences = [self.source.ids(source) for source, _ in pairs]
        self.forget()

    def forget(self) -> None:
        """Forget all states; from now on nodes may have other numbers."""
        self._sentence = NO_STATE
        self._count = 0
        self._after = np.zeros(0, dtype=np.int32)
        self._reached: list[NDArray[np.integer]] = []

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of target words."""
        of_words = [self.words.pair(b"", word)[1] for word in words]
        return [self.target.ids(word)[0] if word else END for word in of_words]

    def guesses(self, words: Integers) -> Floats:
        """Return approximate log p (n,) of words (n,), whatever the context."""
        nothing = np.zeros((1, self._network.width), dtype=np.float32)
        found: Floats = self._network.softmax.all(nothing)[0, words]
        return found

    def log_probs(self, tree: NDArray[np.int32], nodes: Integers, words: Integers) -> Floats:
        """Return log p (n,) of words after nodes of one sentence.

        Args:
            tree: (all nodes, 2) for each node its parent and the id of its word.
            nodes: (n,) nodes.
            words: (n,) ids.
        """
        distinct, row = np.unique(nodes, return_inverse=True)
        self._begin(tree, int(distinct[0]))
        if len(tree) > len(self._after):
            more = np.full(2 * len(tree) - len(self._after), NO_STATE, dtype=np.int32)
            self._after = np.concatenate([self._after, more])
        self._reach(tree, tree[distinct, 0])
        state, last = self._states_of(tree, distinct), tree[distinct, 1].astype(np.int64)
        used, state = np.unique(state, return_inverse=True)
        inputs = Inputs(self._network, last)
        features = self._network.features(self._some(used), state, inputs, last)
        return self._network.softmax.at(features, row, words)

    def _begin(self, tree: NDArray[np.int32], node: int) -> None:
        """Encode the sentence of a node, unless it is the current one and there is memory."""
        while node >= 0:
            node = int(tree[node, 0])
        sentence = root_of(node)
        if sentence == self._sentence and self._count < MOST_STATES:
            return
        self._sentence = sentence
        self._sources: EncodedSources = self._network.encode([self._sentences[sentence]])
        for nodes in self._reached:
            self._after[nodes] = NO_STATE
        self._reached = []
        self._count = 0
        start = self._sources.start
        first = self._network.align(start, np.zeros(len(start), dtype=np.int64), self._sources)
        self._states = np.empty((0, start.shape[1]), dtype=np.float32)
        self._contexts = np.empty((0, first.contexts.shape[1]), dtype=np.float32)
        self._keep(first)

    def _keep(self, states: States) -> Integers:
        """Cache states, and return their numbers."""
        numbers = self._count + np.arange(len(states.states))
        self._count += len(numbers)
        if self._count > len(self._states):
            self._states = _with_room(self._states, 2 * self._count)
            self._contexts = _with_room(self._contexts, 2 * self._count)
        self._states[numbers] = states.states
        self._contexts[numbers] = states.contexts
        return numbers

    def _some(self, numbers: Integers) -> States:
        nothing = np.empty((len(numbers), 0), dtype=np.float32)
        source = np.zeros(len(numbers), dtype=np.int64)
        return States(self._states[numbers], source, nothing, self._contexts[numbers])

    def _states_of(self, tree: NDArray[np.int32], nodes: Integers) -> Integers:
        """Return the numbers of the states at nodes, whose parents' states are cached."""
        before = tree[nodes, 0]
        states: Integers = np.where(before < 0, 0, self._after[before]).astype(np.int64)
        return states

    def _reach(self, tree: NDArray[np.int32], nodes: NDArray[np.integer]) -> None:
        """Compute the states that follow nodes, and all states on the paths from the root."""
        waiting = []
        while True:
            nodes = np.unique(nodes[nodes >= 0])
            nodes = nodes[self._after[nodes] == NO_STATE]
            if not len(nodes):
                break
            waiting.append(nodes)
            nodes = tree[nodes, 0]
        for some in reversed(waiting):
            new = some[self._after[some] == NO_STATE]  # there may be longer ways to it
            if not len(new):
                continue
            used, state = np.unique(self._states_of(tree, new), return_inverse=True)
            last = tree[new, 1].astype(np.int64)
            inputs = Inputs(self._network, last)
            of_used = self._some(used)
            following = self._network.next_states(of_used, state, inputs, last, self._sources)
            self._after[new] = self._keep(following)
            self._reached.append(new)


def _with_room(array: Floats32, rows: int) -> Floats32:
    grown = np.empty((rows, array.shape[1]), dtype=np.float32)
    grown[: len(array)] = array
    return grown
