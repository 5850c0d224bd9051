"""What the decoder needs of a neural model, whatever its contexts are (`records.Contexts`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.records import PLAIN, WITH_BASE
from moses_feature.runtime.arrays import Integers, Records


class NgramScorer(Protocol):
    """Scores n-grams: natural logs.

    Attributes:
        order: words of an n-gram, the predicted one counted.
        columns: numbers of a context: the words before, `order` - 1, and in front of them that of
            a base if the model has several, 0 for none.
        begin: the id that stands for each word before the beginning of a sentence.
        end: that of the end of a sentence.
        null: that of a word that is not known, out of context.
    """

    order: int
    columns: int
    begin: int
    end: int
    null: int

    @property
    def network(self) -> Records | None:
        """The (1,) record that compiled code asks n-gram by n-gram (`moses_feature.cslm.kernels`).

        None for a model that had better be asked many n-grams at a time.
        """

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of words."""

    def log_probs(
        self, contexts: NDArray[np.integer], words: NDArray[np.int64]
    ) -> NDArray[np.floating]:
        """Return log p (n,) of words (n,) after contexts (n, columns), the nearest word last."""


class TreeScorer(Protocol):
    """Scores words after nodes of a tree: natural logs.

    Attributes:
        end: the id of the end of a sentence.
    """

    end: int

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of words."""

    def guesses(self, words: Integers) -> NDArray[np.floating]:
        """Return about what words (n,) score, wherever they stand."""

    def log_probs(
        self, tree: NDArray[np.int32], nodes: Integers, words: Integers
    ) -> NDArray[np.floating]:
        """Return log p (n,) of words (n,) after nodes (n,) of a tree.

        Args:
            tree: (all nodes, 2) of each node the one before, or its root, and the id of its word.
            nodes: of one sentence.
            words: ids.
        """

    def forget(self) -> None:
        """Forget all nodes."""


def kind_of(model: NgramScorer) -> int:
    """Return the kind of a model's contexts."""
    return WITH_BASE if model.columns == model.order else PLAIN


def all_the_same(model: NgramScorer, word: int) -> Integers:
    """Return a context (columns,) of one word again and again, and no base."""
    context = np.full(model.columns, word, dtype=np.int64)
    if kind_of(model) == WITH_BASE:
        context[0] = 0
    return context
