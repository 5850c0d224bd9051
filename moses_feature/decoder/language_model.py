"""Language models for compiled search: states as numbers, and a cache of look-ups.

A model scores one word after one state. Here each state has a number, and a hash table caches
(state, word) -> (score, next state). On a miss, compiled code looks up the n-gram tables. A neural
model is asked many n-grams at a time (Cho et al. 2014, section 4.1.2): the first answer is a guess,
and the n-gram goes into a buffer. When a stack is done, the true scores replace the guesses in the
table, and the stack is filled again, until it used no guess: the result is the one that true scores
would have given at once.

The table is kept when the weights change. When the table or the contexts are full, they are
enlarged, and the computation continues.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.contexts import (
    copied,
    new_contexts,
    number_of,
)
from moses_feature.decoder.lookups import (
    END_OF_SENTENCE,
    ENTRY,
    NOT_KNOWN,
    WORD_BITS,
    Lookups,
    NgramLookups,
    copy_entries,
    put_scores,
)
from moses_feature.decoder.ngram_model import NgramModel, NgramState
from moses_feature.decoder.ngram_tables import COLUMNS, NgramTables
from moses_feature.decoder.source_phrases import surface
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.errors import MosesFeatureError

logger = logging.getLogger(__name__)


class NeuralScorer(Protocol):
    """Scores n-grams: natural logs.

    Attributes:
        order: words of an n-gram, including the predicted one.
        begin: the id that stands for each word before the beginning of a sentence.
        end: the id of the end of a sentence.
        null: the id of a missing context word, used to score words out of context.
    """

    order: int
    begin: int
    end: int
    null: int

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the ids of words."""

    def log_probs(
        self, contexts: NDArray[np.integer], words: NDArray[np.int64]
    ) -> NDArray[np.floating]:
        """Return log p (n,) of words (n,) after contexts (n, order - 1), the nearest last."""


MOST_WORDS = 1 << WORD_BITS
FIRST_SLOTS = 1 << 16
FIRST_CONTEXTS = 1 << 15
MOST_STATES = 1 << 22
"""States of n-gram models added after `keep_states`, at about 65 bytes each; beyond it, they are
forgotten."""
MOST_CONTEXTS = 1 << 22
"""The same for contexts of neural models, at about 500 bytes with scores and spare capacity."""
PAIRS = 1 << 20
BUFFER = 4096
"""N-grams that are scored in one batch, at most."""
TUPLE = 2
"""The number of n-gram models is filled up to a multiple: each number is compiled by itself."""
NO_TABLES = NgramTables(
    np.frombuffer(bytes(32), np.uint32), np.zeros((2, COLUMNS), np.int64), False, 0
)
FILLED_WITH = {"begin": "begin", "empty": "null"}
"""The attribute of a neural model whose id fills its two first contexts."""

T = TypeVar("T")


class LanguageModels:
    """Language models over a common numbering of target words.

    Attributes:
        begin: (models,) the states at the beginning of a sentence.
        empty: (models,) the states without any context.
        scored: n-grams that neural models have scored.
    """

    def __init__(self, models: Sequence[NgramModel | NeuralScorer], buffer: int = BUFFER) -> None:
        self._models = list(models)
        self.scored = 0
        ngrams = [n for n, model in enumerate(models) if isinstance(model, NgramModel)]
        tables = [model.tables for model in models if isinstance(model, NgramModel)]
        tables += [NO_TABLES] * (-len(tables) % TUPLE or (0 if tables else TUPLE))
        table_of = np.zeros(len(models), dtype=np.int64)
        table_of[ngrams] = np.arange(len(ngrams))
        neural = [model for model in models if not isinstance(model, NgramModel)]
        widths = [0 if isinstance(model, NgramModel) else model.order - 1 for model in models]
        words = max((len(of.layout) - 1 for of in tables), default=1)
        states = new_contexts(FIRST_CONTEXTS if ngrams else 2, np.full(len(models), 1 + words))
        self._table = Lookups(
            NgramLookups(
                entries=np.zeros(FIRST_SLOTS, dtype=ENTRY),
                used=np.zeros(1, dtype=np.int64),
                crowded=np.zeros(1, dtype=np.int64),
                ids=np.zeros((len(models), 0), dtype=np.int32),
                rows=states.rows,
                slots=states.slots,
                count=states.used,
                backoffs=np.zeros((len(states.rows), words), dtype=np.float32),
                table_of=table_of,
                tables=tuple(tables),
            ),
            contexts=new_contexts(
                FIRST_CONTEXTS if neural else 2, np.array(widths, dtype=np.int64)
            ),
            guesses=np.zeros((len(models), 0)),
            pairs=np.full(PAIRS if neural else 1, NOT_KNOWN),
            buffer=np.zeros((buffer, 2), dtype=np.int64),
            buffered=np.zeros(1, dtype=np.int64),
            guessed=np.zeros(1, dtype=np.int64),
        )
        self._states = states
        self.begin = self._first_states("begin")
        self.empty = self._first_states("empty")
        self._permanent: tuple[int, int] | None = None  # until `keep_states` all are kept
        self.add_words([b"</s>"])

    def __len__(self) -> int:
        return len(self._models)

    @property
    def words(self) -> int:
        """How many words are numbered."""
        return len(self._table.guesses.T)

    def add_words(self, words: Sequence[bytes]) -> None:
        """Append target words to the common numbering.

        Raises:
            MosesFeatureError: there are more words than can be numbered.
        """
        first, last = self.words, self.words + len(words)
        if last > MOST_WORDS:
            raise MosesFeatureError(f"{last} target words: {MOST_WORDS} at most")
        ids = np.zeros((len(self), len(words)), dtype=np.int32)
        guesses = np.zeros(ids.shape)
        for number, model in enumerate(self._models):
            if isinstance(model, NgramModel):
                ids[number] = model.ids(words)
                continue
            ids[number] = model.ids(surface(words))
            if first == 0:
                ids[number, END_OF_SENTENCE] = model.end
            out_of_context = np.full((len(words), model.order - 1), model.null)
            guesses[number] = model.log_probs(out_of_context, ids[number].astype(np.int64))
        self._replace(ids=np.hstack([self._table.ngrams.ids, ids]))
        guesses = np.hstack([self._table.guesses, guesses])
        self._table = self._table._replace(guesses=guesses)

    def _replace(self, **arrays: Any) -> None:
        """Replace arrays of the n-gram models."""
        self._table = self._table._replace(ngrams=self._table.ngrams._replace(**arrays))

    def keep_states(self) -> None:
        """Keep the current states for good; states added later may be forgotten."""
        self._permanent = self._known()

    def settled(self, compute: Callable[[Lookups], T]) -> T:
        """Return the result of compiled code, called until it used no guess.

        It may return early where it used a guess, or where a table was full, and continue when it
        is called again.
        """
        if self._permanent is not None:
            added = np.subtract(self._known(), self._permanent)
            if (added > (MOST_STATES, MOST_CONTEXTS)).any():
                self._forget(*self._permanent)
        while True:
            self._make_room(half_full=True)
            self._table.guessed[0] = self._table.ngrams.crowded[0] = 0
            result = compute(self._table)
            # The last guesses are still in the buffer: replace them by true scores.
            if self._table.guessed[0]:
                self._score_buffer()
            # A full table gives guesses that are never corrected: enlarge it and repeat. Otherwise
            # a computation that used no guess is the one that true scores would have given.
            if self._table.ngrams.crowded[0]:
                self._make_room(half_full=False)
            elif not self._table.guessed[0]:
                return result

    def _first_states(self, name: str) -> Integers:
        numbers = []
        for number, model in enumerate(self._models):
            if isinstance(model, NgramModel):
                numbers.append(2 * self._number(number, getattr(model, name)))
                continue
            contexts = self._table.contexts
            row = np.zeros(contexts.rows.shape[1], dtype=np.int32)
            row[0] = number
            row[1 - model.order :] = getattr(model, FILLED_WITH[name])
            numbers.append(2 * number_of(contexts, row) + 1)
        return np.array(numbers, dtype=np.int64)

    def _number(self, model: int, state: NgramState) -> int:
        """Return the number of a state of an n-gram model."""
        row = np.zeros(self._states.rows.shape[1], dtype=np.int32)
        row[:2] = model, state.length
        row[2 : 2 + len(state.words)] = state.words
        count = self._states.used[0]
        self._table.ngrams.backoffs[count, : len(state.words)] = state.backoffs
        return number_of(self._states, row)

    def _score_buffer(self) -> None:
        """Score the n-grams of the buffer; if that fails, the guesses are forgotten."""
        table = self._table
        count = int(table.buffered[0])
        states, words = table.buffer[:count].T
        contexts = table.contexts.rows[states >> 1]
        results = np.zeros(count)
        try:
            for number in np.unique(contexts[:, 0]).tolist():
                chosen = np.flatnonzero(contexts[:, 0] == number)
                model = self._models[number]
                assert not isinstance(model, NgramModel)  # noqa: S101
                ids = table.ngrams.ids[number, words[chosen]].astype(np.int64)
                results[chosen] = model.log_probs(contexts[chosen, 1 - model.order :], ids)
        except BaseException:
            self._enlarge_entries(len(table.ngrams.entries), copy=False)
            raise
        finally:
            table.buffered[0] = 0
        put_scores(table, states, words, results)
        self.scored += count

    def _known(self) -> tuple[int, int]:
        """Return the number of states of n-gram models, and of contexts of neural models."""
        return int(self._states.used[0]), int(self._table.contexts.used[0])

    def _make_room(self, half_full: bool) -> None:
        """Double the table, the states and the contexts; only those that are half full, or all."""
        ngrams, states, contexts = self._table.ngrams, self._states, self._table.contexts
        if not half_full or 2 * ngrams.used[0] > len(ngrams.entries):
            self._enlarge_entries(2 * len(ngrams.entries), copy=True)
        if not half_full or 2 * states.used[0] > len(states.rows):
            self._resize_states(2 * len(states.rows), int(states.used[0]))
        if not half_full or 2 * contexts.used[0] > len(contexts.rows):
            new = copied(contexts, 2 * len(contexts.rows), int(contexts.used[0]))
            self._table = self._table._replace(contexts=new)

    def _enlarge_entries(self, slots: int, *, copy: bool) -> None:
        old, entries = self._table.ngrams, np.zeros(slots, dtype=ENTRY)
        if copy:
            copy_entries(old.entries, entries)
        self._replace(entries=entries, used=old.used.copy() if copy else np.zeros_like(old.used))

    def _resize_states(self, room: int, count: int) -> None:
        old = self._table.ngrams.backoffs
        backoffs = np.zeros((room, old.shape[1]), dtype=np.float32)
        backoffs[:count] = old[:count]
        self._states = new = copied(self._states, room, count)
        self._replace(rows=new.rows, slots=new.slots, count=new.used, backoffs=backoffs)

    def _forget(self, states: int, contexts: int) -> None:
        """Forget all but the first states and contexts."""
        table = self._table
        self._resize_states(len(self._states.rows), states)
        new = copied(table.contexts, len(table.contexts.rows), contexts)
        self._table = self._table._replace(contexts=new)
        self._enlarge_entries(len(table.ngrams.entries), copy=False)
        logger.info("the cache of the language models was full and begins anew")
