"""KenLM's language models, called from compiled code or, where that is impossible, from Python.

The Python package `kenlm` scores one word a call and returns Python objects. Compiled code calls
the C++ methods behind it: methods of `lm::base::Model` and `lm::base::Vocabulary`
(`lm/virtual_interface.hh`). They are found as the C++ ABI of Linux and macOS places them: an object
begins with the address of the method table of its class, and the methods follow two destructors.
The library exports the addresses of these tables, so an object of another class is never taken for
a model. If the library does not export them, or anything differs from what is expected, compiled
code asks Python instead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from copy import copy
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
"""Size in bytes of a Python `kenlm.Model`: header, model, path, vocabulary."""
MODEL_AT, VOCABULARY_AT = 16, 32
STATE_SIZE_AT, BEGIN_AT, EMPTY_AT, ITS_VOCABULARY_AT = (WORD * n for n in range(1, 5))
"""Offsets in `lm::base::Model`: the size of a state, the two first states, the vocabulary."""
FIRST_METHOD = 2 * WORD
"""Offset in a method table of `BaseScore` (model) and `Index` (vocabulary)."""
TABLE_BEGINS = 2 * WORD
"""Where the method addresses begin behind the exported symbol of a table."""
LONGEST_STATE = 1024


class _StringPiece(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("length", ctypes.c_size_t))


@dataclass(frozen=True)
class KenlmAddresses:
    """A model of KenLM for compiled code. A state is an `lm::ngram::State` as 32-bit numbers.

    Attributes:
        model: the address of the C++ object, which lives as long as the Python object.
        score: the address of `float BaseScore(model, const State *, unsigned, State *)`, log10.
        begin, empty: (words,) the states at the beginning of a sentence, and without any context.
    """

    model: int
    score: int
    begin: NDArray[np.int32]
    empty: NDArray[np.int32]
    _vocabulary: int
    _index: Any

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return KenLM's ids of words in UTF-8; 0 for unknown words."""
        pieces = (_StringPiece(word, len(word)) for word in words)
        return [self._index(self._vocabulary, ctypes.byref(piece)) for piece in pieces]


def addresses_of(model: Any) -> KenlmAddresses | None:
    """Return the addresses of a `kenlm.Model`; None if they cannot be determined."""
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
    """Set the unused part of a state to 0, so that equal states have equal bytes.

    A state is an array of words, an array of as many backoff weights, and its length in words.
    """
    last = len(state) - 1
    state[last] &= 0xFF  # the length is one byte
    most = last // 2
    for place in range(state[last], most):
        state[place] = state[place + most] = 0


compiled_clean = inner(clean)


@cache
def _tables(classes: Sequence[str], suffix: str) -> frozenset[int]:
    """Return the addresses of the method tables of `lm::ngram` classes that the library exports."""
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

    A word that is not valid UTF-8 is unknown to the model.

    Attributes:
        begin, empty: the states at the beginning of a sentence, and without any context.
        addresses: the C++ addresses for compiled code; None if it must ask Python.

    Args:
        path: the file.
        factor: of words with several (`a|b`) the one that the model reads.
    """

    def __init__(self, path: str, factor: int = 0) -> None:
        self._factor = factor
        self._model = load_kenlm(path)
        self._words: list[str] = []
        self._ids: dict[bytes, int] = {}
        self.begin, self.empty = kenlm.State(), kenlm.State()
        self._model.BeginSentenceWrite(self.begin)
        self._model.NullContextWrite(self.empty)
        self.addresses = addresses_of(self._model)

    def without_words(self) -> KenlmModel:
        """Return the same model with a numbering of words of its own; KenLM's ids are shared."""
        same = copy(self)
        same._words = []
        return same

    def add_words(self, words: Sequence[bytes]) -> list[int]:
        """Append target words; return KenLM's id of each, 0 if there are no addresses."""
        if self.addresses is None:
            self._words += [self._text(word) for word in words]
            return [0] * len(words)
        new = [word for word in words if word not in self._ids]
        ids = self.addresses.ids([self._text(word).encode() for word in new])
        self._ids.update(zip(new, ids, strict=True))
        return [self._ids[word] for word in words]

    def _text(self, word: bytes) -> str:
        factors = word.split(b"|")
        return factors[self._factor if len(factors) > 1 else 0].decode(errors="replace")

    def score(self, state: Any, word: int) -> tuple[float, Any]:
        """Return log p of a word (natural log), and the state after it."""
        after = kenlm.State()
        score: float = self._model.BaseScore(state, self._words[word], after)
        return score * LOG_10, after


class KenlmStates:
    """Numbers for the Python states of some models, given by model number."""

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
        """Return log p (natural log) of a word after a state, and the number of the next state."""
        model, state = self._states[number]
        score, after = self._models[model].score(state, word)
        return score, self.number(model, after)

    def forget(self, first: int) -> None:
        """Forget the states from number `first` on."""
        for key in self._states[first:]:
            del self._numbers[key]
        del self._states[first:]
