"""KenLM's binary files, mapped into memory: where the n-grams and the words are.

Follows KenLM's `lm/binary_format.cc` and `lm/vocab.cc`, and how its searches set up memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.ngram_tables import (
    BACKOFF_BITS,
    BACKOFF_TABLE,
    COLUMNS,
    ENTRIES,
    NEXT_BITS,
    OFFSET,
    POINTER_COUNT,
    POINTERS,
    PROB_BITS,
    PROB_TABLE,
    SIZE,
    WORD_BITS,
    NgramTables,
)
from moses_feature.moses.language_model import BINARY
from moses_feature.runtime.errors import DataError, MosesFeatureError

MAGIC = BINARY + b" format version 5\n\0"
SANE = Struct("<3f3IQ")
"""Numbers by which a reader knows that it reads numbers as the writer wrote them."""
FIXED = Struct("<BxxxfIBxxxI")
"""Order, places of a hash table for each entry, type, whether words are there, version."""
HEADER = 88
"""Bytes before the fixed parameters: the magic ones, filled up to 56, and the numbers."""
PROBING, REST_PROBING, TRIE = 0, 1, 2
QUANTISED, ARRAY = 1, 2
"""Added to the type of a trie: values in tables; high bits of pointers in an array."""
HIGHEST_ORDER = 32
UNKNOWN_WORDS = (b"<unk>", b"<UNK>")


@dataclass(frozen=True)
class ModelWords:
    """Where the words of a model are: sorted hashes, or a hash table."""

    hashes: NDArray[np.uint64] | None
    begin: int = 0
    places: int = 0


def map_binary(path: Path) -> tuple[NgramTables, ModelWords]:
    """Map a binary model into memory; see `read_ngram_file`."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(HEADER + FIXED.size + 8 * HIGHEST_ORDER)
        content = np.memmap(path, np.uint32, "r", shape=(size // 4,))
    except (OSError, ValueError) as error:
        raise MosesFeatureError(f"{path}: cannot be read: {error}") from error
    try:
        layout = BinaryLayout.of(head, content, size)
    except (ValueError, IndexError, OverflowError) as error:
        found = error if str(error) else "damaged numbers"
        expected = "a binary model of KenLM, format version 5"
        raise DataError(f"{path}: expected {expected}, found {found}") from error
    return layout.tables(), layout.words()


def _required_bits(number: int) -> int:
    return number.bit_length()


class BinaryLayout:
    """The parts of a binary file, found one after the other."""

    def __init__(
        self,
        content: NDArray[np.uint32],
        counts: Sequence[int],
        kind: int,
        multiplier: float,
        at: int,
    ) -> None:
        self._content = content
        self._counts = counts
        self._at = at
        """Bytes."""
        self._layout = np.zeros((len(counts), COLUMNS), dtype=np.int64)
        self._is_trie = kind >= TRIE
        if self._is_trie:
            self._words = self._sorted_words()
            self._find_trie(kind - TRIE)
        else:
            self._words = self._word_table(multiplier)
            self._find_hash_tables(multiplier, 3 if kind == REST_PROBING else 2)

    @classmethod
    def of(cls, head: bytes, content: NDArray[np.uint32], size: int) -> BinaryLayout:
        """Find the parts of a file that begins with `head`.

        Raises:
            ValueError: it is no such file, or not whole.
        """
        sane = SANE.pack(0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
        if not head.startswith(MAGIC) or head[56:HEADER] != sane:
            raise ValueError(f"one that begins with {head[:56]!r}")
        if len(head) < HEADER + FIXED.size:
            raise ValueError("a file of a few bytes")
        order, multiplier, kind, _, _ = FIXED.unpack_from(head, HEADER)
        if not 2 <= order <= HIGHEST_ORDER or not 1 <= multiplier < math.inf or kind > 5:
            raise ValueError(f"order {order}, type {kind}, {multiplier} places an entry")
        end = HEADER + FIXED.size + 8 * order
        counts = np.frombuffer(head[:end], np.uint64, order, HEADER + FIXED.size).tolist()
        if sum(counts) > size:
            raise ValueError(f"{size} bytes for {sum(counts)} n-grams")
        found = cls(content, counts, kind, multiplier, -(-end // 8) * 8)
        if found._at > size:
            raise ValueError(f"a file that was cut: {size} bytes, not {found._at}")
        return found

    @staticmethod
    def size(counts: Sequence[int], kind: int, multiplier: float, at: int) -> int:
        """Return the bytes of a file of hash tables, of which `at` are its head."""
        return BinaryLayout(np.zeros(0, np.uint32), counts, kind, multiplier, at)._at

    def tables(self) -> NgramTables:
        """Return the n-grams."""
        return NgramTables(self._content, self._layout, self._is_trie, self._counts[0] + 1)

    def words(self) -> ModelWords:
        """Return where the words are."""
        return self._words

    def _take(self, size: int) -> int:
        """Return where the next part begins, of so many bytes."""
        begin, self._at = self._at, self._at + size
        return begin

    def _element(self, at: int) -> int:
        """Return the element of the content at a byte."""
        if at % 4:
            raise ValueError("a part that begins between two numbers")
        return at // 4

    def _bytes(self, at: int, count: int) -> bytes:
        return self._content[at // 4 : (at + count + 3) // 4].tobytes()[at % 4 :][:count]

    def _sorted_words(self) -> ModelWords:
        at = self._element(self._take(8 * (1 + self._counts[0])))
        count = int(self._content[at : at + 2].copy().view(np.uint64)[0])
        if count > self._counts[0] or at + 2 + 2 * count > len(self._content):
            raise ValueError(f"{count} words of {self._counts[0]}")
        hashes = np.frombuffer(self._content.data, np.uint64, count, 4 * (at + 2))
        return ModelWords(hashes)

    def _word_table(self, multiplier: float) -> ModelWords:
        places = _places(self._counts[0], multiplier)
        return ModelWords(None, self._element(self._take(8 + 12 * places) + 8), places)

    def _find_hash_tables(self, multiplier: float, values: int) -> None:
        """Find the tables; each n-gram but the longest has so many values.

        The third one, a rest cost, is for decoders of another kind and not read.
        """
        counts, layout = self._counts, self._layout
        layout[0, SIZE] = values
        layout[0, OFFSET] = self._element(self._take(4 * values * (counts[0] + 1)))
        for n, count in enumerate(counts[1:], 1):
            layout[n, SIZE] = size = 3 if n == len(counts) - 1 else 2 + values
            layout[n, ENTRIES] = places = _places(count, multiplier)
            layout[n, OFFSET] = self._element(self._take(4 * size * places))

    def _find_trie(self, how: int) -> None:
        counts, layout = self._counts, self._layout
        order = len(counts)
        prob_bits, backoff_bits = 31, 32
        if how & QUANTISED:
            version, prob_bits, backoff_bits = self._bytes(self._take(8), 3)
            if version != 2 or not 1 <= prob_bits <= 25 or not 1 <= backoff_bits <= 25:
                raise ValueError(f"quantisation of version {version}")
            for n in range(1, order):
                layout[n, PROB_TABLE] = self._element(self._take(4 << prob_bits))
                if n < order - 1:
                    layout[n, BACKOFF_TABLE] = self._element(self._take(4 << backoff_bits))
        layout[0, OFFSET] = self._element(self._take(16 * (counts[0] + 2)))
        layout[0, SIZE] = 4
        layout[1:, PROB_BITS], layout[1:-1, BACKOFF_BITS] = prob_bits, backoff_bits
        word_bits = layout[1:, WORD_BITS] = _required_bits(counts[0])
        self._chosen = self._bytes(self._at, 2)[1] if how & ARRAY and order > 2 else 0
        for n in range(1, order):
            bits = word_bits + prob_bits
            if n < order - 1:
                bits += backoff_bits + self._find_pointers(n, bool(how & ARRAY))
            layout[n, SIZE], layout[n, ENTRIES] = bits, counts[n]
            if bits > 57 + 63:
                raise ValueError(f"entries of {bits} bits")
            layout[n, OFFSET] = 8 * self._take(((1 + counts[n]) * bits + 7) // 8 + 8)

    def _find_pointers(self, n: int, in_array: bool) -> int:
        """Find the array with the high bits of pointers; return the bits in an entry."""
        most, entries = self._counts[n + 1], self._counts[n] + 1
        required = _required_bits(most)
        chopped = 0
        if in_array:
            changes = [
                (most >> (required - chop)) * 64 - entries * chop
                for chop in range(min(required, self._chosen) + 1)
            ]
            chopped = changes.index(min(changes))
            count = (most >> (required - chopped)) + 1
            at = self._take(8 * (1 + count) + 7)
            self._layout[n, POINTERS] = self._element(-(-at // 8) * 8 + 8)
            self._layout[n, POINTER_COUNT] = count
        self._layout[n, NEXT_BITS] = required - chopped
        return required - chopped


def _places(entries: int, multiplier: float) -> int:
    """Return the places of a hash table (`util/probing_hash_table.hh`), computed in float32."""
    return max(entries + 1, int(np.float32(multiplier) * np.float32(entries)))
