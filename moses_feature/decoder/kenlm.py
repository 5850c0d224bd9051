"""KenLM's language models, asked by compiled code or, where that cannot, by Python.

The package `kenlm` hands out one word's score a call, in Python objects; its library holds the C++
functions behind it. They are methods of `lm::base::Model` and `lm::base::Vocabulary`
(`lm/virtual_interface.hh`), found where the C++ ABI of Linux and macOS puts them: an object begins
with the address of the table of its class, and the table has them after two destructors. The
library tells where the tables of KenLM's classes are, so that nothing is taken for a model that is
none; where it does not tell, or anything differs, there are no addresses, and Python is asked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import kenlm
import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.language_model import LOG_10, load_kenlm
from moses_feature.runtime.compiled import inner

MODELS = ("Probing", "RestProbing", "Trie", "ArrayTrie", "QuantTrie", "QuantArrayTrie")
VOCABULARIES = ("Probing", "Sorted")
WORD = 8
"""Bytes of an address."""
SIZE_OF_MODEL = 40
"""Bytes of a Python object of `kenlm.Model`: its header, the model, its path, its vocabulary."""
MODEL_AT, VOCABULARY_AT = 16, 32
STATE_SIZE_AT, BEGIN_AT, EMPTY_AT, ITS_VOCABULARY_AT = (WORD * n for n in range(1, 5))
"""Where `lm::base::Model` has the bytes of a state, and the addresses of states and vocabulary."""
FIRST_METHOD = 2 * WORD
"""`BaseScore` of a model, `Index` of a vocabulary."""
TABLE_BEGINS = 2 * WORD
"""Where the methods begin in a table."""
LONGEST_STATE = 1024


class _StringPiece(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("length", ctypes.c_size_t))


@dataclass(frozen=True)
class KenlmAddresses:
    """A model of KenLM for compiled code. States are `lm::ngram::State` as 32-bit numbers.

    Attributes:
        model: of the C++ object; it lives as long as the Python object.
        score: of `float BaseScore(model, const State *, unsigned, State *)`, log10.
        begin, empty: (words,) the states at the beginning of a sentence, and without any context.
    """

    model: int
    score: int
    begin: NDArray[np.int32]
    empty: NDArray[np.int32]
    _vocabulary: int
    _index: Any

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return KenLM's ids of words in UTF-8; 0 for those that it does not know."""
        pieces = (_StringPiece(word, len(word)) for word in words)
        return [self._index(self._vocabulary, ctypes.byref(piece)) for piece in pieces]


def addresses_of(model: Any) -> KenlmAddresses | None:
    """Return the addresses of a `kenlm.Model`; None if they cannot be told."""
    if kenlm.Model.__basicsize__ != SIZE_OF_MODEL:
        return None
    inside, vocabulary = _address_at(id(model) + MODEL_AT), _address_at(id(model) + VOCABULARY_AT)
    if _address_at(inside) not in _tables(MODELS, "Model"):
        return None
    if _address_at(vocabulary) not in _tables(VOCABULARIES, "Vocabulary"):
        return None
    size = _address_at(inside + STATE_SIZE_AT)
    if _address_at(inside + ITS_VOCABULARY_AT) != vocabulary or size > LONGEST_STATE:
        return None
    index = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
    return KenlmAddresses(
        inside,
        _address_at(_address_at(inside) + FIRST_METHOD),
        _state_at(_address_at(inside + BEGIN_AT), size),
        _state_at(_address_at(inside + EMPTY_AT), size),
        vocabulary,
        index(_address_at(_address_at(vocabulary) + FIRST_METHOD)),
    )


def clean(state: NDArray[np.int32]) -> None:
    """Set to 0 what stands behind the length of a state: words, as many weights, the length."""
    last = len(state) - 1
    state[last] &= 0xFF  # it is one byte
    most = last // 2
    for place in range(state[last], most):
        state[place] = state[place + most] = 0


compiled_clean = inner(clean)


@cache
def _tables(classes: Sequence[str], suffix: str) -> frozenset[int]:
    """Return where the methods of classes of `lm::ngram` stand, as far as the library tells."""
    library = ctypes.CDLL(kenlm.__file__)
    found = set()
    for name in (prefix + suffix for prefix in classes):
        try:
            table = ctypes.c_char.in_dll(library, f"_ZTVN2lm5ngram{len(name)}{name}E")
        except ValueError:
            continue
        found.add(ctypes.addressof(table) + TABLE_BEGINS)
    return frozenset(found)


def _address_at(place: int) -> int:
    return ctypes.c_uint64.from_address(place).value


def _state_at(place: int, size: int) -> NDArray[np.int32]:
    state = np.frombuffer(ctypes.string_at(place, size), dtype=np.int32).copy()
    clean(state)
    return state


class KenlmModel:
    """A model of the kenlm package; scores are natural logs.

    A word that is not UTF-8 is unknown to it.

    Attributes:
        begin, empty: the states at the beginning of a sentence, and without any context.
        addresses: for compiled code; None if it must ask Python.
    """

    def __init__(self, path: str) -> None:
        self._model = load_kenlm(path)
        self._words: list[str] = []
        self.begin, self.empty = kenlm.State(), kenlm.State()
        self._model.BeginSentenceWrite(self.begin)
        self._model.NullContextWrite(self.empty)
        self.addresses = addresses_of(self._model)

    def add_words(self, words: Sequence[bytes]) -> list[int]:
        """Number more target words, in order; return KenLM's ids of them, 0 without addresses."""
        decoded = [word.decode(errors="replace") for word in words]
        self._words += decoded
        if self.addresses is None:
            return [0] * len(words)
        return self.addresses.ids([word.encode() for word in decoded])

    def score(self, state: Any, word: int) -> tuple[float, Any]:
        """Return log p of a word, and the state after it."""
        after = kenlm.State()
        score: float = self._model.BaseScore(state, self._words[word], after)
        return score * LOG_10, after


class KenlmStates:
    """Numbered states of some models.

    Args:
        models: by their numbers.
    """

    def __init__(self, models: Mapping[int, KenlmModel]) -> None:
        self._models = models
        self._states: list[tuple[int, Any]] = []
        self._numbers: dict[tuple[int, Any], int] = {}

    def __len__(self) -> int:
        return len(self._states)

    def number(self, model: int, state: Any) -> int:
        """Return the number of a state of a model."""
        key = model, state
        number = self._numbers.setdefault(key, len(self._states))
        if number == len(self._states):
            self._states.append(key)
        return number

    def score(self, number: int, word: int) -> tuple[float, int]:
        """Return log p of a word after a state, a natural log, and the state after it."""
        model, state = self._states[number]
        score, after = self._models[model].score(state, word)
        return score, self.number(model, after)

    def forget(self, first: int) -> None:
        """Forget the states from a number on."""
        for key in self._states[first:]:
            del self._numbers[key]
        del self._states[first:]
