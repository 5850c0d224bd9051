"""KenLM language models for compiled search: states as numbers, and a cache of look-ups.

The kenlm package scores one word after one state. Here each state has a number, and a hash table
remembers (state, word) -> (score, next state), so that compiled code asks Python for what is new
only. The table outlives a change of weights. Scores are natural logs (KenLM itself returns
log10), as in `moses/LM/Ken.cpp`.
"""

from __future__ import annotations

import ctypes
import logging
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import kenlm
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from mert.decoders.compiled import compiled, inner
from moses_feature.errors import MosesFeatureError

logger = logging.getLogger(__name__)

LOG_10 = math.log(10.0)
END_OF_SENTENCE = 0
"""The number of the word `</s>`."""
MOST_WORDS = 1 << 24
FIRST_SLOTS = 1 << 16
MOST_STATES = 1 << 21
"""States that are remembered, at about 250 bytes each; beyond, most are forgotten."""

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
        ask: address of the function that Python answers with.
    """

    keys: Integers
    scores: Floats
    following: Integers
    used: Integers
    answer: Integers
    ask: int


class LanguageModels:
    """One or more KenLM models over a common numbering of target words.

    Attributes:
        begin: (models,) the states at the beginning of a sentence.
        empty: (models,) the states without any context.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._models = [_load(path) for path in paths]
        self._words: list[str] = ["</s>"]
        self._states: list[Any] = []
        self._model_of: list[tuple[Any, dict[Any, int]]] = []
        self._numbers: list[dict[Any, int]] = [{} for _ in paths]
        self._error: BaseException | None = None
        self.begin = self._first_states("BeginSentenceWrite")
        self.empty = self._first_states("NullContextWrite")
        self._callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_int64)(
            self._answer
        )
        self._following = np.zeros(1, dtype=np.int64)
        self._permanent = len(self._states)
        self._make_table(FIRST_SLOTS)

    def __len__(self) -> int:
        return len(self._models)

    def add_words(self, words: Sequence[bytes]) -> None:
        """Number more target words, in order; a word that is not UTF-8 is unknown to the models.

        Raises:
            MosesFeatureError: more words than can be numbered.
        """
        self._words += [word.decode(errors="replace") for word in words]
        if len(self._words) > MOST_WORDS:
            raise MosesFeatureError(f"{len(self._words)} target words: {MOST_WORDS} at most")

    def keep_states(self) -> None:
        """Never forget the states that are known now."""
        self._permanent = len(self._states)

    def lookups(self) -> Lookups:
        """Return the table for compiled code, with room for many more look-ups."""
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

    def _first_states(self, write: str) -> Integers:
        numbers = []
        for model, known in zip(self._models, self._numbers, strict=True):
            state = kenlm.State()
            getattr(model, write)(state)
            numbers.append(self._number(model, known, state))
        return np.array(numbers, dtype=np.int64)

    def _number(self, model: Any, known: dict[Any, int], state: Any) -> int:
        number = known.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
            self._model_of.append((model, known))
        return number

    def _answer(self, state: int, word: int) -> float:
        try:
            model, known = self._model_of[state]
            after = kenlm.State()
            score: float = model.BaseScore(self._states[state], self._words[word], after)
            self._following[0] = self._number(model, known, after)
        except BaseException as error:  # it cannot pass through compiled code
            self._error = error
            self._following[0] = state
            return -math.inf
        return score * LOG_10

    def _make_table(self, slots: int, old: Lookups | None = None) -> None:
        address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self._table = Lookups(
            np.zeros(slots, dtype=np.int64),
            np.empty(slots),
            np.empty(slots, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            self._following,
            address,
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


def _load(path: str) -> Any:
    config = kenlm.Config()
    config.show_progress = False
    try:
        return kenlm.Model(path, config)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise MosesFeatureError(f"{path}: expected a language model for KenLM: {reason}") from None


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
