"""What the decoder needs of a neural language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moses_feature.arrays import Records


class NgramScorer(Protocol):
    """Scores n-grams: natural logs.

    Attributes:
        order: words of an n-gram, the predicted one counted.
        begin: the id that stands for each word before the beginning of a sentence.
        end: that of the end of a sentence.
        null: that of a word that is not known, out of context.
    """

    order: int
    begin: int
    end: int
    null: int

    @property
    def network(self) -> Records | None:
        """The (1,) record that compiled code asks n-gram by n-gram (`moses_feature.lm.kernels`).

        None for a model that had better be asked many n-grams at a time.
        """

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of words."""

    def log_probs(
        self, contexts: NDArray[np.integer], words: NDArray[np.int64]
    ) -> NDArray[np.floating]:
        """Return log p (n,) of words (n,) after contexts (n, order - 1), the nearest word last."""
