"""RNNsearch as a decoder feature: log p(next word | prefix, source), batched.

The prefixes of translations are the nodes of a tree; each sentence has one root. States are kept
for the current sentence; see `moses_feature.rnnsearch.tree_states`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from moses_feature.networks.architectures import RNNSEARCH
from moses_feature.networks.direction import FORWARD
from moses_feature.networks.pieces import PieceVocabulary
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.table_words import TableWords
from moses_feature.rnnsearch.decoder_step import EncodedSources
from moses_feature.rnnsearch.inference import SearchNetwork
from moses_feature.rnnsearch.tree_states import Tree, TreeStates
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.sentences.scorer import SentenceModel

MOST_STATES = 1 << 15
"""The most states of a sentence that are kept, at 5 kB each with `small`."""
NONE = -1
"""The number of no sentence, and of no sentences that are encoded together."""
TOGETHER = 16
"""Source sentences that are encoded together."""
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
        self._states = TreeStates(self._network)
        self._sentences: list[list[int]] = []
        self._sources: EncodedSources
        self.forget()

    def read(self, sentences: Sequence[Sequence[bytes]]) -> None:
        """Replace the source text."""
        pairs = (self.words.pair(b" ".join(sentence), b"") for sentence in sentences)
        self._sentences = [self.source.ids(source) for source, _ in pairs]
        self._chunk = NONE
        self.forget()

    def forget(self) -> None:
        """Forget all states; from now on nodes may have other numbers."""
        self._sentence = NONE

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of target words, from now on words of nodes."""
        of_words = [self.words.pair(b"", word)[1] for word in words]
        ids = [self.target.ids(word)[0] if word else END for word in of_words]
        self._states.add_words(np.array(ids, dtype=np.int64))
        return ids

    def guesses(self, words: Integers) -> Floats:
        """Return approximate log p (n,) of words (n,), whatever the context."""
        nothing = np.zeros((1, self._network.width), dtype=np.float32)
        found: Floats = self._network.softmax.all(nothing)[0, words]
        return found

    def log_probs(self, tree: Tree, nodes: Integers, words: Integers) -> Floats:
        """Return log p (n,) of words after nodes of one sentence.

        Args:
            tree: all nodes.
            nodes: (n,) nodes.
            words: (n,) ids.
        """
        self._begin(tree, int(nodes[0]))
        return self._network.softmax.at(*self._states.features(tree, nodes), words)

    def _begin(self, tree: Tree, node: int) -> None:
        """Take the sentence of a node, unless it is the current one and there is memory."""
        while node >= 0:
            node = int(tree[node, 0])
        sentence = root_of(node)
        if sentence == self._sentence and self._states.count < MOST_STATES:
            return
        self._sentence = sentence
        chunk, place = divmod(sentence, TOGETHER)
        if chunk != self._chunk:
            first = chunk * TOGETHER
            self._sources = self._network.encode(self._sentences[first : first + TOGETHER])
            self._chunk = chunk
        self._states.begin(self._sources.only(place))
