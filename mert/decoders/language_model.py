"""Language models for compiled search: states as numbers, and a cache of look-ups.

A model scores one word after one state. Here each state has a number, and a hash table remembers
(state, word) -> (score, next state), so that compiled code asks Python for what is new only. The
table outlives a change of weights.

A model may answer with a guess first (see `neural_model.py`). Then what was computed is computed
again after the true scores have come into the table, until nothing was guessed: the result is the
same as if each answer had been true at once, but the n-grams are scored many at a time.
"""

from __future__ import annotations

import ctypes
import logging
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from mert.decoders.compiled import compiled, inner
from moses_feature.errors import MosesFeatureError

logger = logging.getLogger(__name__)

END_OF_SENTENCE = 0
"""The number of the word `</s>`."""
MOST_WORDS = 1 << 24
FIRST_SLOTS = 1 << 16
MOST_STATES = 1 << 23
"""States that are remembered, at about 250 bytes each; beyond, most are forgotten."""

T = TypeVar("T")
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Lookups(NamedTuple):
    """What compiled code needs to score words.

    Attributes:
        keys: (slots,) state and word of each remembered look-up, 0 where there is none.
        scores: (slots,) natural logs.
        following: (slots,) the state after the word.
        used: (1,) slots in use.
        answer: (1,) where Python leaves the state after a new look-up.
        guessed: (1,) answers that were guesses, since it was last set to 0.
        asked: (models,) look-ups of each model in search.
        ask: address of the function that Python answers with.
        flush: address of the function that puts true scores in the place of guesses.
    """

    keys: Integers
    scores: Floats
    following: Integers
    used: Integers
    answer: Integers
    guessed: Integers
    asked: Integers
    ask: int
    flush: int


class LanguageModel(Protocol):
    """What is needed of a model; scores are natural logs."""

    @property
    def begin(self) -> Hashable:
        """The state at the beginning of a sentence."""

    @property
    def empty(self) -> Hashable:
        """The state without any context."""

    def add_words(self, words: Sequence[bytes]) -> None:
        """Number more target words, in order; the first of all is `</s>`."""

    def ask(self, state: Any, word: int) -> tuple[float, bool, Any]:
        """Return log p of a word or a guess, whether it is no guess, and the state after it."""

    def flush(self) -> list[tuple[Any, int, float]]:
        """Return state, word and log p of all that was answered with a guess."""


class LanguageModels:
    """Language models over a common numbering of target words.

    Attributes:
        begin: (models,) the states at the beginning of a sentence.
        empty: (models,) the states without any context.
        asked: (models,) look-ups in search, of which most are remembered.
    """

    def __init__(self, models: Sequence[LanguageModel]) -> None:
        self._models = list(models)
        self._words = 0
        self._states: list[Any] = []
        self._model_of: list[int] = []
        self._numbers: list[dict[Any, int]] = [{} for _ in models]
        self._error: BaseException | None = None
        self._overflow: dict[tuple[int, int], float] = {}
        self.begin = self._numbers_of([model.begin for model in models])
        self.empty = self._numbers_of([model.empty for model in models])
        signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_int64)
        self._callbacks = signature(self._answer), signature(self._flush)
        self._following = np.zeros(1, dtype=np.int64)
        self._guessed = np.zeros(1, dtype=np.int64)
        self.asked = np.zeros(len(models), dtype=np.int64)
        self._permanent = len(self._states)
        self._make_table(FIRST_SLOTS)
        self.add_words([b"</s>"])

    def __len__(self) -> int:
        return len(self._models)

    def add_words(self, words: Sequence[bytes]) -> None:
        """Number more target words, in order.

        Raises:
            MosesFeatureError: more words than can be numbered.
        """
        self._words += len(words)
        if self._words > MOST_WORDS:
            raise MosesFeatureError(f"{self._words} target words: {MOST_WORDS} at most")
        for model in self._models:
            model.add_words(words)

    def keep_states(self) -> None:
        """Never forget the states that are known now."""
        self._permanent = len(self._states)

    def settled(self, compute: Callable[[Lookups], T]) -> T:
        """Return what compiled code computes once nothing in it is guessed any more."""
        while True:
            lookups = self.lookups()
            lookups.guessed[0] = 0
            result = compute(lookups)
            self.check()
            if not lookups.guessed[0]:
                return result
            self._flush(0, 0)
            self.check()

    def lookups(self) -> Lookups:
        """Return the table for compiled code, with room for many more look-ups."""
        self._overflow = {}
        if len(self._states) - self._permanent > MOST_STATES:
            self._forget()
        if 2 * self._table.used[0] > len(self._table.keys):
            self._make_table(4 * len(self._table.keys), self._table)
        return self._table

    def check(self) -> None:
        """Raise what went wrong while compiled code asked; Ctrl-C, for example."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _numbers_of(self, states: Sequence[Any]) -> Integers:
        numbers = [self._number(model, state) for model, state in enumerate(states)]
        return np.array(numbers, dtype=np.int64)

    def _number(self, model: int, state: Any) -> int:
        number = self._numbers[model].setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
            self._model_of.append(model)
        return number

    def _answer(self, state: int, word: int) -> float:
        try:
            model = self._model_of[state]
            score, certain, after = self._models[model].ask(self._states[state], word)
            self._following[0] = self._number(model, after)
            if not certain:
                known = self._overflow.get((state, word))
                if known is not None:
                    return known
                self._guessed[0] += 1
        except BaseException as error:  # it cannot pass through compiled code
            self._error = error
            self._following[0] = state
            return -math.inf
        return score

    def _flush(self, *_: int) -> float:
        """Put true scores in the place of guesses; return -1 if that fails, for compiled code."""
        try:
            for model, numbers in zip(self._models, self._numbers, strict=True):
                scored = [(numbers[state], word, score) for state, word, score in model.flush()]
                if not scored:
                    continue
                states, words, scores = (np.array(column) for column in zip(*scored, strict=True))
                for place in _put_scores(self._table, states, words, scores).tolist():
                    self._overflow[scored[place][:2]] = scored[place][2]
        except BaseException as error:  # it cannot pass through compiled code
            self._error = error
            return -1.0
        return 0.0

    def _make_table(self, slots: int, old: Lookups | None = None) -> None:
        ask, flush = (ctypes.cast(c, ctypes.c_void_p).value or 0 for c in self._callbacks)
        self._table = Lookups(
            np.zeros(slots, dtype=np.int64),
            np.empty(slots),
            np.empty(slots, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            self._following,
            self._guessed,
            self.asked,
            ask,
            flush,
        )
        if old is not None:
            _copy(old, self._table)

    def _forget(self) -> None:
        del self._states[self._permanent :]
        del self._model_of[self._permanent :]
        for known in self._numbers:
            for state in [state for state, n in known.items() if n >= self._permanent]:
                del known[state]
        self._make_table(len(self._table.keys))
        logger.info("the cache of the language models was full and begins anew")


@intrinsic
def _ask(typing_context, address, state, word):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Call the C function at an address with two integers; it returns a float."""
    signature = types.float64(types.int64, types.int64, types.int64)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ARG001
        kind = ir.FunctionType(ir.DoubleType(), [ir.IntType(64), ir.IntType(64)])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, arguments[1:])

    return signature, generate


@inner
def _slot(key, slots):  # type: ignore[no-untyped-def]  # pragma: no cover
    mixed = key * -7046029254386353131  # 2^64 divided by the golden ratio, as a signed number
    return (mixed ^ (mixed >> 32)) & (slots - 1)


@inner
def score_word(lookups, state, word):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return log p(word | state), a natural log, and the state after the word."""
    key = (state << 24) + word + 1
    slots = len(lookups.keys)
    slot = _slot(key, slots)
    while lookups.keys[slot] != 0:
        if lookups.keys[slot] == key:
            return lookups.scores[slot], lookups.following[slot]
        slot = (slot + 1) & (slots - 1)
    score = _ask(lookups.ask, state, word)  # type: ignore[call-arg, var-annotated]
    following = lookups.answer[0]
    if 8 * lookups.used[0] < 7 * slots:  # a fuller table would be slow; it grows in between
        lookups.keys[slot] = key
        lookups.scores[slot] = score
        lookups.following[slot] = following
        lookups.used[0] += 1
    return score, following


@inner
def flush(lookups):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Put true scores in the place of guesses; tell whether that was possible."""
    return _ask(lookups.flush, 0, 0) >= 0.0  # type: ignore[call-arg]


@compiled
def _put_scores(lookups, states, words, scores):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write scores where their keys are in the table; return the places of those that are not."""
    slots = len(lookups.keys)
    missing = np.empty(len(states), np.int64)
    count = 0
    for place in range(len(states)):
        key = (states[place] << 24) + words[place] + 1
        slot = _slot(key, slots)
        while lookups.keys[slot] != 0 and lookups.keys[slot] != key:
            slot = (slot + 1) & (slots - 1)
        if lookups.keys[slot] == key:
            lookups.scores[slot] = scores[place]
        else:
            missing[count] = place
            count += 1
    return missing[:count]


@compiled
def _copy(old, new):  # type: ignore[no-untyped-def]  # pragma: no cover
    slots = len(new.keys)
    for place in range(len(old.keys)):
        if old.keys[place] != 0:
            slot = _slot(old.keys[place], slots)
            while new.keys[slot] != 0:
                slot = (slot + 1) & (slots - 1)
            new.keys[slot] = old.keys[place]
            new.scores[slot] = old.scores[place]
            new.following[slot] = old.following[place]
            new.used[0] += 1
