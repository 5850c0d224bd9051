"""What is known of translations: their statistics, counted once for each different one."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from mert.lattices.paths import Translations
from moses_feature.arrays import Integers
from moses_feature.compiled import compiler
from moses_feature.hash_table import mixed, place_of, size_for
from moses_feature.metrics.metric import ReferenceStatistics


class CountedStrings:
    """The statistics of translations against the references of their sentences.

    Several threads may ask at once.

    Args:
        references: of each sentence of the text.
        vocabulary: the words by their numbers; it may grow.
        width: statistics of a translation.
    """

    def __init__(
        self,
        references: Sequence[ReferenceStatistics],
        vocabulary: Sequence[bytes],
        width: int,
    ) -> None:
        self._references = references
        self._vocabulary = vocabulary
        self._used = 0
        self._keys = np.zeros(size_for(1024), np.int64)
        self._rows = np.zeros(len(self._keys), np.int64)
        self._statistics = np.zeros((1024, width), np.int32)
        self._lock = threading.Lock()

    def rows(self, translations: Translations, numbers: Integers) -> Integers:
        """Return in which row (n,) of the statistics each translation stands.

        Args:
            translations: of some sentences.
            numbers: (sentences,) of these in the text.
        """
        of_sentence = translations.of_sentence
        sentences = np.repeat(numbers, np.diff(of_sentence))
        with self._lock:
            self._make_room(self._used + len(sentences))
            rows, new = _rows_of(sentences, translations, self._keys, self._rows, self._used)
            if len(new):
                self._count(sentences[new], new, translations)
        return rows

    def statistics(self) -> np.ndarray:
        """Return the statistics (rows and more, width)."""
        return self._statistics

    def _make_room(self, count: int) -> None:
        if size_for(count) > len(self._keys):
            keys = np.zeros(2 * size_for(count), np.int64)
            rows = np.zeros(len(keys), np.int64)
            _move(self._keys, self._rows, keys, rows)
            self._keys, self._rows = keys, rows
        if count > len(self._statistics):
            more = np.zeros((2 * count, self._statistics.shape[1]), np.int32)
            more[: self._used] = self._statistics[: self._used]
            self._statistics = more

    def _count(self, sentences: Integers, new: Integers, translations: Translations) -> None:
        """Count the statistics of translations that are new, sentence by sentence."""
        offsets, words, vocabulary = translations.word_offsets, translations.words, self._vocabulary
        texts = [
            [vocabulary[word] for word in words[offsets[number] : offsets[number + 1]].tolist()]
            for number in new.tolist()
        ]
        begins = np.flatnonzero(np.diff(sentences, prepend=-1))
        for begin, end in zip(begins, [*begins[1:], len(new)], strict=True):
            counted = self._references[sentences[begin]].statistics(texts[begin:end])
            self._statistics[self._used + begin : self._used + end] = counted
        self._used += len(new)


@compiler(nogil=True)
def _rows_of(
    sentences: Integers, translations: Translations, keys: Integers, rows: Integers, used: int
) -> tuple[Integers, Integers]:
    """Look translations up by a 64-bit hash, and give a row to those that are not known.

    Args:
        sentences: (n,) of the text.
        translations: to look up.
        keys: a hash table with room for all of them.
        rows: their rows.
        used: rows in use.

    Returns:
        the row of each (n,), and which of them are new, row after row.
    """
    found = np.empty(len(sentences), np.int64)
    new = np.empty(len(sentences), np.int64)
    count = 0
    for number in range(len(sentences)):
        key = mixed(0, sentences[number] + 1)
        for place in range(
            translations.word_offsets[number], translations.word_offsets[number + 1]
        ):
            key = mixed(key, translations.words[place] + 1)
        key = key if key != 0 else 1
        slot = place_of(keys, key)
        if keys[slot] == 0:
            keys[slot] = key
            rows[slot] = used + count
            new[count] = number
            count += 1
        found[number] = rows[slot]
    return found, new[:count]


@compiler(nogil=True)
def _move(keys: Integers, rows: Integers, larger_keys: Integers, larger_rows: Integers) -> None:
    """Write the entries of a hash table into a larger one."""
    for slot in range(len(keys)):
        if keys[slot] != 0:
            place = place_of(larger_keys, keys[slot])
            larger_keys[place] = keys[slot]
            larger_rows[place] = rows[slot]
