"""A neural language model in search: what is asked is buffered and scored in large products.

(Cho et al. 2014, section 4.1.2.) Until then an answer is a guess; see `LanguageModels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

BUFFER = 4096
"""N-grams that are scored together, at most."""

Context = tuple[int, ...]
Integers = NDArray[np.int64]


class NgramScorer(Protocol):
    """What the decoder needs of a neural language model.

    Attributes:
        order: words of an n-gram.
        begin: stands for each word before the beginning of a sentence.
        end: the end of a sentence.
        null: stands for each word that is not known, out of context.
    """

    order: int
    begin: int
    end: int
    null: int

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of words."""

    def log_probs(self, contexts: Integers, words: Integers) -> NDArray[np.floating]:
        """Return log p (n,), natural logs, of words (n,) after contexts (n, order - 1)."""


class NeuralModel:
    """An n-gram scorer with a buffer; see `LanguageModel`. A state is the context.

    Args:
        scorer: of n-grams.
        buffer: n-grams that are scored together; 0 to score each as it is asked.
    """

    def __init__(self, scorer: NgramScorer, buffer: int = BUFFER) -> None:
        self._scorer = scorer
        self._room = buffer
        width = scorer.order - 1
        self.begin: Context = (scorer.begin,) * width
        self.empty: Context = (scorer.null,) * width
        self._ids: list[int] = []
        self._guesses: list[float] = []
        self._asked: list[tuple[Context, int]] = []
        self._scored: list[tuple[Context, int, float]] = []
        self.scored = 0

    def add_words(self, words: Sequence[bytes]) -> None:
        """Number more target words, in order; the first word of all is the end of a sentence."""
        ids = self._scorer.ids(words)
        if not self._ids:
            ids[0] = self._scorer.end
        self._ids += ids
        self._guesses += self._log_probs([self.empty] * len(ids), ids)

    def ask(self, state: Context, word: int) -> tuple[float, bool, Context]:
        """Return log p of a word or a guess, whether it is no guess, and the state after it."""
        after = (*state[1:], self._ids[word])
        if not self._room:
            self.scored += 1
            return self._log_probs([state], [self._ids[word]])[0], True, after
        if len(self._asked) == self._room:
            self._score_asked()
        self._asked.append((state, word))
        return self._guesses[word], False, after

    def flush(self) -> list[tuple[Context, int, float]]:
        """Return state, word and score of all that was answered with a guess."""
        self._score_asked()
        scored, self._scored = self._scored, []
        return scored

    def _score_asked(self) -> None:
        if not self._asked:
            return
        contexts, words = zip(*self._asked, strict=True)
        scores = self._log_probs(contexts, [self._ids[word] for word in words])
        self._scored += zip(contexts, words, scores, strict=True)
        self.scored += len(scores)
        self._asked = []

    def _log_probs(self, contexts: Sequence[Context], ids: Sequence[int]) -> list[float]:
        width = self._scorer.order - 1
        scores = self._scorer.log_probs(
            np.array(contexts, dtype=np.int64).reshape(-1, width), np.array(ids, dtype=np.int64)
        )
        found: list[float] = scores.tolist()
        return found
