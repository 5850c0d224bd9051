"""n-gram models, ARPA or KenLM's binary ones, for the embedded decoder.

Values and states are those of KenLM to the last bit, for orders up to 6, its highest; higher orders
are looked up in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.arpa import read_arpa
from moses_feature.decoder.ngram_file import ModelWords, map_binary
from moses_feature.decoder.ngram_tables import (
    OFFSET,
    SIZE,
    NgramTables,
    hashes_of,
    ids_in_table,
    score_once,
)
from moses_feature.moses.language_model import is_binary
from moses_feature.runtime.arrays import Floats32
from moses_feature.runtime.errors import DataError

UNKNOWN_WORDS = (b"<unk>", b"<UNK>")


@dataclass(frozen=True)
class NgramState:
    """A context: its words, the nearest first, and the backoff weights of what they make."""

    words: NDArray[np.int32]
    backoffs: Floats32
    length: int


class NgramModel:
    """An n-gram model with numbers for target words; for the embedded decoder.

    A word that is not valid UTF-8 is unknown to the model.

    Attributes:
        tables: its n-grams.
        order: words of an n-gram, including the predicted one.
        begin, empty: the states at the beginning of a sentence, and without any context.

    Args:
        tables: its n-grams.
        words: where its words are.
        factor: of words with several (`a|b`) the one that the model reads.

    Raises:
        DataError: the model does not know <s> and </s>.
    """

    def __init__(self, path: str, tables: NgramTables, words: ModelWords, factor: int = 0) -> None:
        self.tables = tables
        self.order = len(tables.layout)
        self._where = words
        self._factor = factor
        self._ids: dict[bytes, int] = {}
        begin, end = self.ids([b"<s>", b"</s>"])
        if not (begin and end):
            raise DataError(f"{path}: expected n-grams of <s> and </s>, found none")
        self.empty = NgramState(*self._room(), 0)
        only, backoffs = self._room()
        at = int(tables.layout[0, OFFSET] + begin * tables.layout[0, SIZE]) + 1
        only[0], backoffs[0] = begin, tables.content[at : at + 1].view(np.float32)[0]
        self.begin = NgramState(only, backoffs, 1)

    def _room(self) -> tuple[NDArray[np.int32], Floats32]:
        return np.zeros(self.order - 1, np.int32), np.zeros(self.order - 1, np.float32)

    def with_factor(self, factor: int) -> NgramModel:
        """Return the same model for another factor of words."""
        same = copy(self)
        same._factor, same._ids = factor, {}
        return same

    def ids(self, words: Sequence[bytes]) -> list[int]:
        """Return the model's ids of words; 0 for unknown ones."""
        new = list(dict.fromkeys(word for word in words if word not in self._ids))
        texts = [self._text(word) for word in new]
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        hashes = hashes_of(np.frombuffer(b"".join(texts) + b"\0", np.uint8), offsets)
        where = self._where
        if where.hashes is None:
            found = ids_in_table(self.tables.content, where.begin, where.places, hashes)
        else:
            place = np.searchsorted(where.hashes, hashes)
            known = place < len(where.hashes)
            known[known] = where.hashes[place[known]] == hashes[known]
            found = np.where(known, place + 1, 0).astype(np.int32)
        found[found >= self.tables.words] = 0
        ids = (0 if text in UNKNOWN_WORDS else id_ for text, id_ in zip(texts, found, strict=True))
        self._ids.update(zip(new, map(int, ids), strict=True))
        return [self._ids[word] for word in words]

    def _text(self, word: bytes) -> bytes:
        factors = word.split(b"|")
        text = factors[self._factor if len(factors) > 1 else 0]
        return text.decode(errors="replace").encode()

    def after(self, state: NgramState, word: int) -> tuple[float, NgramState]:
        """Return log10 p of a word (its id) after a state, and the state after it."""
        given = state.words, state.backoffs, state.length
        prob, words, backoffs, length = score_once(self.tables, *given, word)
        return prob, NgramState(words, backoffs, length)


def read_ngram_model(path: str, cache: Path | None = None) -> NgramModel:
    """Read a model.

    Args:
        path: an ARPA file, compressed or not, or a binary one.
        cache: a folder that keeps the tables of an ARPA file; None for no folder.

    Raises:
        MosesFeatureError: the file cannot be read.
        DataError: it is no model.
    """
    found = map_binary(Path(path)) if is_binary(Path(path)) else read_arpa(path, cache)
    return NgramModel(path, *found)
