"""A network for sentences as a decoder feature: log p(next word | prefix, source), batched.

The prefixes of translations are the nodes of a tree; each sentence has one root. log p of a word is
the sum over its pieces. States are kept for the current sentence; see `tree_states` of each
architecture.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from moses_feature.networks.architectures import ARCHITECTURES
from moses_feature.networks.datastores import Datastores
from moses_feature.networks.direction import FORWARD
from moses_feature.networks.trees import Tree
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.sentences.piece_tree import PieceTree
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.sentences.settings import MOST_PIECES

MOST_STATES = 1 << 15
"""With more states of a sentence than these, at 3 to 5 kB each with `small`, all are forgotten."""
MOST_AT_ONCE = 1 << 12
"""Pieces that are scored together, about."""
NONE = -1
"""The number of no sentence, and of no sentences that are encoded together."""
TOGETHER = 16
"""Source sentences that are encoded together."""
DEFAULT_HISTORY = 4
"""Hypotheses recombine if this many of their last words are the same."""


def root_of(sentence: int) -> int:
    """Return the number that stands for the parent of a sentence's root."""
    return -1 - sentence


def sum_by(owner: Integers, values: Floats, count: int) -> Floats:
    """Return the sums (count,) of values (n,) by their owners (n,)."""
    sums: Floats = np.bincount(owner, values, count).astype(np.float64)
    return sums


class NetworkFeature:
    """Scores words after the nodes of a tree: natural logs of p(word | prefix, source).

    Attributes:
        source, target: the vocabularies.
        words: how tokens become words.
        end: the number of the end of a sentence.

    Args:
        directory: the model directory.

    Raises:
        MosesFeatureError: the model cannot be read, or does not write the target from left to
            right.
    """

    def __init__(self, directory: Path) -> None:
        scorer = SentenceModel(directory)
        if scorer.direction != FORWARD:
            raise MosesFeatureError(
                f"{directory}: expected a network of {FORWARD} in a search, found one of "
                f"{scorer.direction}: rescore n-best lists with it"
            )
        self._directory = directory
        self.source, self.target = scorer.source, scorer.target
        self.words = TableWords().words(scorer)
        self._network = scorer.network
        self._states = ARCHITECTURES[scorer.architecture].load("states")(scorer.network)
        self._sources: Any
        self._datastores: Datastores | None
        self.read([])

    def read(self, sentences: Sequence[Sequence[bytes]]) -> None:
        """Replace the source text; words must be numbered again."""
        self._pieces = PieceTree()
        (self.end,) = self._pieces.words([[END]])
        pairs = (self.words.sentences(b" ".join(sentence), b"") for sentence in sentences)
        self._sentences = [self.source.ids(source) for source, _ in pairs]
        self._chunk = NONE
        self.forget()

    def forget(self) -> None:
        """Forget all states; from now on nodes may have other numbers."""
        self._sentence = NONE

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the numbers of target words, from now on words of nodes.

        Raises:
            MosesFeatureError: a word has too many pieces.
        """
        of_words = (self.target.ids(self.words.pair(b"", word)[1]) for word in words)
        spellings = [pieces or [END] for pieces in of_words]
        for word, pieces in zip(words, spellings, strict=True):
            if len(pieces) > MOST_PIECES:
                raise MosesFeatureError(
                    f"expected words of {MOST_PIECES} subwords at most in a search with "
                    f"{self._directory}, found {len(pieces)}: {word[:20].decode(errors='replace')}…"
                )
        flat = [piece for pieces in spellings for piece in pieces]
        self._states.add_words(np.array(flat, dtype=np.int64))
        return self._pieces.words(spellings)

    def guesses(self, words: Integers) -> Floats:
        """Return approximate log p (n,) of words (n,), whatever the context."""
        pieces, owner = self._pieces.pieces(words)
        return sum_by(owner, self._network.softmax.out_of_context[pieces], len(words))

    def log_probs(self, tree: Tree, nodes: Integers, words: Integers) -> Floats:
        """Return log p (n,) of words after nodes of one sentence.

        Args:
            tree: all nodes.
            nodes: (n,) nodes.
            words: (n,) numbers.
        """
        parts = np.cumsum(self._pieces.lengths(words)) // MOST_AT_ONCE
        bounds = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(words)]
        found = (
            self._log_probs_of_some(tree, nodes[first:end], words[first:end])
            for first, end in pairwise(bounds)
        )
        return np.concatenate(list(found))

    def _log_probs_of_some(self, tree: Tree, nodes: Integers, words: Integers) -> Floats:
        self._begin(tree, int(nodes[0]))
        before, pieces, owner = self._pieces.asked(tree, nodes, words)
        features, row = self._states.features(self._pieces.tree, before)
        datastores = self._datastores and self._datastores.of(np.full(len(features), self._place))
        log_probs = self._network.softmax.at(features, row, pieces, datastores)
        return sum_by(owner, log_probs, len(words))

    def _begin(self, tree: Tree, node: int) -> None:
        """Take the sentence of a node, unless it is the current one and there is memory."""
        while node >= 0:
            node = int(tree[node, 0])
        sentence = root_of(node)
        if sentence == self._sentence and self._states.count < MOST_STATES:
            return
        self._sentence = sentence
        chunk, self._place = divmod(sentence, TOGETHER)
        if chunk != self._chunk:
            first = chunk * TOGETHER
            some = self._sentences[first : first + TOGETHER]
            self._sources, self._datastores = (
                self._network.encode(some),
                self._network.datastores(some),
            )
            self._chunk = chunk
        self._pieces.begin()
        self._states.begin(self._sources.only(self._place))
