"""Language models for compiled search: states as numbers, and a cache of look-ups.

A model scores one word after one state. Here each state has a number, and a hash table remembers
(state, word) -> (score, next state). What is not in it is asked: of KenLM through Python, word by
word; of a neural model many n-grams at a time (Cho et al. 2014, section 4.1.2). For these a guess
is the answer at first, and the n-gram goes into a buffer. When the buffer is full or a stack is
done, the true scores come into the table, and what was computed is computed again, until nothing
in it was guessed: the result is that of true answers from the beginning.

The table outlives a change of weights. Where it has no room for a guess, the search is done again
with a larger one.
"""

from __future__ import annotations

import ctypes
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mert.decoders.embedded.contexts import copied, new_contexts, number_after, number_of
from mert.decoders.embedded.kenlm_model import KenlmModel
from mert.decoders.embedded.ngram_scorer import NgramScorer
from mert.decoders.embedded.records import Lookups
from mert.hash_table import first_place, mixed, place_of
from moses_feature.arrays import Floats, Integers
from moses_feature.compiled import compiled, inner
from moses_feature.errors import MosesFeatureError

logger = logging.getLogger(__name__)

END_OF_SENTENCE = 0
"""The number of the word `</s>`."""
MOST_WORDS = 1 << 24
FIRST_SLOTS = 1 << 16
FIRST_CONTEXTS = 1 << 15
MOST_STATES = 1 << 21
"""States of KenLM that are remembered, at about 250 bytes each; beyond, most are forgotten."""
MOST_CONTEXTS = 1 << 24
"""The same for neural models, at about 150 bytes with their scores."""
PAIRS = 1 << 20
NOT_KNOWN = 1e30
RATE = 0.2
"""By which the guess for a word moves to each new score of it."""
BUFFER = 4096
"""N-grams that are scored together, at most; 0 for each as it is asked."""

T = TypeVar("T")


class LanguageModels:
    """Language models over a common numbering of target words.

    Attributes:
        begin: (models,) the states at the beginning of a sentence.
        empty: (models,) the states without any context.
        asked: (models,) look-ups in search, of which most are remembered.
        scored: n-grams that neural models have scored.
    """

    def __init__(self, models: Sequence[KenlmModel | NgramScorer], buffer: int = BUFFER) -> None:
        self._models = list(models)
        self._words = 0
        self._states: list[Any] = []
        self._model_of: list[int] = []
        self._numbers: dict[int, dict[Any, int]] = {}
        self._error: BaseException | None = None
        widths = [0 if isinstance(model, KenlmModel) else model.order - 1 for model in models]
        self._contexts = new_contexts(FIRST_CONTEXTS, np.array(widths, dtype=np.int64))
        self._ids = np.zeros((len(models), 0), dtype=np.int32)
        self._guesses = np.zeros((len(models), 0))
        self.asked = np.zeros(len(models), dtype=np.int64)
        self.scored = 0
        self.begin = self._first_states("begin")
        self.empty = self._first_states("empty")
        self._permanent: tuple[int, int] | None = None  # nothing is forgotten yet
        signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_int64)
        self._callbacks = signature(self._answer), signature(self._flush)
        self._following, self._buffered = (np.zeros(1, dtype=np.int64) for _ in range(2))
        self._guessed, self._crowded = (np.zeros(1, dtype=np.int64) for _ in range(2))
        self._pairs = np.full(PAIRS if any(widths) else 1, NOT_KNOWN)
        self._buffer = np.zeros((buffer, 2), dtype=np.int64)
        self._results = np.zeros(max(1, buffer))
        self._table: Lookups
        self._make_table(FIRST_SLOTS)
        self.add_words([b"</s>"])

    def __len__(self) -> int:
        return len(self._models)

    def add_words(self, words: Sequence[bytes]) -> None:
        """Number more target words, in order.

        Raises:
            MosesFeatureError: more words than can be numbered.
        """
        first, self._words = self._words, self._words + len(words)
        if self._words > MOST_WORDS:
            raise MosesFeatureError(f"{self._words} target words: {MOST_WORDS} at most")
        ids = np.zeros((len(self), len(words)), dtype=np.int32)
        guesses = np.zeros(ids.shape)
        for number, model in enumerate(self._models):
            if isinstance(model, KenlmModel):
                model.add_words(words)
                continue
            ids[number] = model.ids(words)
            if first == 0:
                ids[number, END_OF_SENTENCE] = model.end
            out_of_context = np.full((len(words), model.order - 1), model.null)
            guesses[number] = model.log_probs(out_of_context, ids[number].astype(np.int64))
        self._ids = np.hstack([self._ids, ids])
        self._guesses = np.hstack([self._guesses, guesses])
        self._table = self._table._replace(ids=self._ids, guesses=self._guesses)

    def keep_states(self) -> None:
        """Never forget the states that are known now; others may be forgotten from now on."""
        self._permanent = len(self._states), int(self._contexts.used[0])

    def settled(self, compute: Callable[[Lookups], T]) -> T:
        """Return what compiled code computes once nothing in it is guessed any more."""
        while True:
            lookups = self.lookups()
            lookups.guessed[0] = lookups.crowded[0] = 0
            result = compute(lookups)
            # What was guessed last is still in the buffer: its scores take the place of guesses.
            if lookups.guessed[0]:
                self._flush()
            self.check()
            # A full table answers with guesses that nobody will correct; else a computation
            # without a guess in it is the one that true answers would have given.
            if lookups.crowded[0]:
                self._make_room()
            elif not lookups.guessed[0]:
                return result

    def lookups(self) -> Lookups:
        """Return the table for compiled code, with room for many more look-ups."""
        if self._permanent is not None:
            states, contexts = self._permanent
            added = int(self._contexts.used[0]) - contexts
            if len(self._states) - states > MOST_STATES or added > MOST_CONTEXTS:
                self._forget(states, contexts)
        if 2 * self._table.used[0] > len(self._table.keys):
            self._make_table(2 * len(self._table.keys), self._table)
        if 2 * self._contexts.used[0] > len(self._contexts.rows):
            self._make_contexts(2 * len(self._contexts.rows), int(self._contexts.used[0]))
        return self._table

    def check(self) -> None:
        """Raise what went wrong while compiled code asked; Ctrl-C, for example."""
        if self._error is not None:
            error, self._error = self._error, None
            self._buffered[0] = 0
            self._make_table(len(self._table.keys))  # there may be guesses in it
            raise error

    def _first_states(self, name: str) -> Integers:
        numbers = []
        for number, model in enumerate(self._models):
            if isinstance(model, KenlmModel):
                numbers.append(self._number(number, getattr(model, name)))
                continue
            row = np.zeros(self._contexts.rows.shape[1], dtype=np.int32)
            row[0] = number
            row[1 - model.order :] = model.begin if name == "begin" else model.null
            numbers.append(2 * number_of(self._contexts, row) + 1)
        return np.array(numbers, dtype=np.int64)

    def _number(self, model: int, state: Any) -> int:
        """Return the number of a state of KenLM."""
        index = self._numbers.setdefault(model, {}).setdefault(state, len(self._states))
        if index == len(self._states):
            self._states.append(state)
            self._model_of.append(model)
        return 2 * index

    def _answer(self, state: int, word: int) -> float:
        try:
            number = self._model_of[state >> 1]
            model = self._models[number]
            assert isinstance(model, KenlmModel)  # noqa: S101  # the number is even
            score, after = model.score(self._states[state >> 1], word)
            self._following[0] = self._number(number, after)
        except BaseException as error:  # it cannot pass through compiled code
            self._error = error
            self._following[0] = state
            return -math.inf
        return score

    def _flush(self, state: int = 0, word: int = 0) -> float:
        """Score what is in the buffer, or the one n-gram; return -1 if that fails."""
        try:
            count = int(self._buffered[0])
            waiting = self._buffer if len(self._buffer) else np.array([[state, word]])
            states, words = waiting[:count].T
            contexts = self._contexts.rows[states >> 1]
            for number in np.unique(contexts[:, 0]).tolist():
                model = self._models[number]
                assert not isinstance(model, KenlmModel)  # noqa: S101
                chosen = np.flatnonzero(contexts[:, 0] == number)
                ids = self._ids[number, words[chosen]].astype(np.int64)
                scores = model.log_probs(contexts[chosen, 1 - model.order :], ids)
                self._results[chosen] = scores
            _put_scores(self._table, states, words, self._results)
            self.scored += count
            self._buffered[0] = 0
        except BaseException as error:  # it cannot pass through compiled code
            self._error = error
            return -1.0
        return 0.0

    def _make_table(self, slots: int, old: Lookups | None = None) -> None:
        ask, flush = (ctypes.cast(c, ctypes.c_void_p).value or 0 for c in self._callbacks)
        self._table = Lookups(
            keys=np.zeros(slots, dtype=np.int64),
            scores=np.empty(slots),
            following=np.empty(slots, dtype=np.int64),
            used=np.zeros(1, dtype=np.int64),
            answer=self._following,
            contexts=self._contexts,
            ids=self._ids,
            guesses=self._guesses,
            pairs=self._pairs,
            buffer=self._buffer,
            results=self._results,
            buffered=self._buffered,
            guessed=self._guessed,
            crowded=self._crowded,
            asked=self.asked,
            ask=ask,
            flush=flush,
        )
        if old is not None:
            _copy(old, self._table)

    def _make_contexts(self, room: int, count: int) -> None:
        self._contexts = copied(self._contexts, room, count)
        self._table = self._table._replace(contexts=self._contexts)

    def _make_room(self) -> None:
        """Make table and contexts larger."""
        self._make_table(2 * len(self._table.keys), self._table)
        self._make_contexts(2 * len(self._contexts.rows), int(self._contexts.used[0]))

    def _forget(self, states: int, contexts: int) -> None:
        """Forget all but the first states and contexts."""
        del self._states[states:]
        del self._model_of[states:]
        for known in self._numbers.values():
            for state in [state for state, n in known.items() if n >= states]:
                del known[state]
        self._make_contexts(len(self._contexts.rows), contexts)
        self._make_table(len(self._table.keys))
        logger.info("the cache of the language models was full and begins anew")


def _call(typing_context: Any, address: Any, state: Any, word: Any) -> Any:  # noqa: ARG001
    """Compile a call of the C function at an address with two integers; it returns a float."""
    signature = types.float64(types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        kind = ir.FunctionType(ir.DoubleType(), [ir.IntType(64), ir.IntType(64)])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, arguments[1:])

    return signature, generate


_ask: Any = intrinsic(_call)
"""Takes the address of the function, and the integers."""


@inner
def _key(state: int, word: int) -> int:
    """Return what a look-up is remembered by; never 0."""
    return (state << 24) + word + 1


@inner
def score_word(lookups: Lookups, state: int, word: int) -> tuple[float, int]:
    """Return log p(word | state), a natural log, and the state after the word.

    What is not remembered is asked of KenLM, or guessed for a neural model.
    """
    key = _key(state, word)
    slot = place_of(lookups.keys, key)
    if lookups.keys[slot] == key:
        return lookups.scores[slot], lookups.following[slot]
    # A table more than 7/8 full would be slow; it grows between two searches.
    room = 8 * lookups.used[0] < 7 * len(lookups.keys)
    if state & 1 == 1:
        if not room:
            lookups.crowded[0] = 1
            return lookups.guesses[lookups.contexts.rows[state >> 1, 0], word], state
        return _guess(lookups, state, word, slot)
    score = _ask(lookups.ask, state, word)
    following = lookups.answer[0]
    if room:
        _remember(lookups, slot, key, score, following)
    return score, following


@inner
def _remember(lookups: Lookups, slot: int, key: int, score: float, following: int) -> None:
    """Put an answer into a free place of the table."""
    lookups.keys[slot] = key
    lookups.scores[slot] = score
    lookups.following[slot] = following
    lookups.used[0] += 1


@inner
def _guess(lookups: Lookups, state: int, word: int, slot: int) -> tuple[float, int]:
    """Return a guess, or the score if there is no buffer, and the state after the word."""
    contexts = lookups.contexts
    model = contexts.rows[state >> 1, 0]
    # The best guess is what the word scored last after the same word, else what it scores in the
    # mean: the better the guess, the fewer passes over a stack.
    guess = lookups.pairs[_pair(lookups, state, word)]
    if guess == NOT_KNOWN:
        guess = lookups.guesses[model, word]
    # The guess is remembered as if it were the score, until the buffer is flushed.
    after = number_after(contexts, state >> 1, lookups.ids[model, word])
    if after < 0:
        lookups.crowded[0] = 1
        return guess, state
    following = 2 * after + 1
    _remember(lookups, slot, _key(state, word), guess, following)
    if len(lookups.buffer) == 0:  # asked at once, one by one: the plain twin in the tests
        lookups.buffered[0] = 1
        _ask(lookups.flush, state, word)
        return lookups.results[0], following
    if lookups.buffered[0] == len(lookups.buffer):
        flush(lookups)
    if lookups.buffered[0] < len(lookups.buffer):  # else the flush has failed
        place = lookups.buffered[0]
        lookups.buffer[place, 0] = state
        lookups.buffer[place, 1] = word
        lookups.buffered[0] = place + 1
    lookups.guessed[0] += 1
    return guess, following


@inner
def _pair(lookups: Lookups, state: int, word: int) -> int:
    """Return the place of the last word of a context and a word among the pairs."""
    row = lookups.contexts.rows[state >> 1]
    hashed = mixed(mixed(mixed(0, row[0]), row[-1]), lookups.ids[row[0], word])
    return first_place(hashed, len(lookups.pairs))


@inner
def flush(lookups: Lookups) -> bool:
    """Score what is in the buffer; tell whether that was possible."""
    return _ask(lookups.flush, 0, 0) >= 0.0


@compiled
def _put_scores(lookups: Lookups, states: Integers, words: Integers, scores: Floats) -> None:
    """Write scores in the place of guesses, and learn to guess."""
    for place in range(len(states)):
        slot = place_of(lookups.keys, _key(states[place], words[place]))
        lookups.scores[slot] = scores[place]
        lookups.pairs[_pair(lookups, states[place], words[place])] = scores[place]
        model = lookups.contexts.rows[states[place] >> 1, 0]
        guess = lookups.guesses[model, words[place]]
        lookups.guesses[model, words[place]] = guess + RATE * (scores[place] - guess)


@compiled
def _copy(old: Lookups, new: Lookups) -> None:
    """Put what a table remembers into an empty one."""
    for place in range(len(old.keys)):
        key = old.keys[place]
        if key != 0:
            _remember(new, place_of(new.keys, key), key, old.scores[place], old.following[place])
