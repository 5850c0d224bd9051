"""The source phrases of a text, by which tables are filtered."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from moses_feature.moses.lines import LONGEST_LINE, lines_in
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.scanning import BAR, SPACE, TAB, field_end, line_end, stripped
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled, helper
from moses_feature.runtime.strings import (
    Strings,
    hash_of,
    number_in_pool,
    over,
    same,
    slot_of,
    with_room,
)

Sentence = Sequence[bytes]

NO_PHRASE, ODD, LONGER = -1, -2, -3
"""A source field that does not occur in the text; one that Python must parse; one with more words
than the phrases that are numbered so far."""


class Lines(NamedTuple):
    """The lines of a block whose source phrase occurs in the text.

    Attributes:
        source: (lines,) number of the source phrase.
        begin, end: (lines,) where in the block the line begins, and ends behind its line feed.
        field: (lines,) where its second field begins, behind the separator.
    """

    source: Integers
    begin: Integers
    end: Integers
    field: Integers


class SourcePhrases:
    """The phrases of some sentences, numbered.

    The phrases of a length are numbered when a table first has one of that length.

    Args:
        sentences: the sentences, as tokens.
        longest: the longest phrase in words.

    Attributes:
        longest: as given.
    """

    def __init__(self, sentences: Sequence[Sentence], longest: int) -> None:
        words = list(itertools.chain.from_iterable(sentences))
        text = np.frombuffer(b" ".join(words), dtype=np.uint8)
        self.longest = longest
        self._word_ends = np.cumsum([len(word) + 1 for word in words], dtype=np.int64) - 1
        self._word_begins = self._word_ends - np.array([len(word) for word in words], np.int64)
        self._sentences = np.cumsum([0, *(len(sentence) for sentence in sentences)])
        self._strings = over(text)
        self._of_length: list[Integers] = []

    def __len__(self) -> int:
        return int(self._strings.used[0])

    def lines(self, block: bytes) -> Lines:
        """Return the lines of a block whose source phrase occurs in the text.

        Lines that are too long are always among them.
        """
        array = np.frombuffer(block, dtype=np.uint8)
        rows = np.empty((lines_in(block) + 1, 4), dtype=np.int64)
        count = place = 0
        while place < len(block):
            found, place = _select(array, place, self._strings, len(self._of_length), rows[count:])
            count += found
            if found and (last := rows[count - 1])[0] < NO_PHRASE:
                last[0] = self.number(block[last[1] : last[3]].partition(b"|||")[0])
        rows = rows[:count]
        kept = (rows[:, 0] >= 0) | (rows[:, 2] - rows[:, 1] > LONGEST_LINE)
        return Lines(*np.ascontiguousarray(rows[kept].T))

    def number(self, field: bytes) -> int:
        """Return the number of a source field; -1 if no sentence has the phrase."""
        phrase = field.strip(b" \t")
        if b"\t" in phrase or b"  " in phrase or b"|" in phrase:
            phrase = b" ".join(surface_words(phrase))
        length = phrase.count(b" ") + 1
        if length > self.longest:
            return -1
        self.gather(length)
        return self.number_of(phrase)

    def number_of(self, phrase: bytes) -> int:
        """Return the number of a phrase of words with one space between them; -1 if it has none."""
        return self._strings.number(phrase)

    def phrase(self, number: int) -> bytes:
        """Return the words of a phrase, with one space between them."""
        return self._strings.of(number)

    @property
    def gathered(self) -> int:
        """The length in words of the longest phrases that are numbered."""
        return len(self._of_length)

    def gather(self, length: int) -> None:
        """Number all phrases of up to `length` words."""
        for words in range(len(self._of_length) + 1, length + 1):
            numbers = np.full(len(self._word_begins), -1, dtype=np.int64)
            self._strings = with_room(self._strings, len(numbers))
            places = self._word_begins, self._word_ends, self._sentences
            _gather(self._strings, *places, words, numbers)
            self._of_length.append(numbers)

    def hashes(self) -> Integers:
        """Return the hash (phrases,) of each phrase that is numbered."""
        return _hashes(self._strings)

    def spans(self) -> list[Integers]:
        """Return for each sentence (n, longest): the phrase of 1, 2, … words from each word on.

        An element is the number of the phrase, or -1 for none.
        """
        self.gather(1)
        of_words = np.stack(self._of_length, axis=1)
        return [of_words[first:last] for first, last in itertools.pairwise(self._sentences)]


@compiled
def _hashes(strings: Strings) -> Integers:
    found = np.empty(strings.used[0], np.int64)
    for number in range(strings.used[0]):
        found[number] = hash_of(strings.pool, strings.begin[number], strings.end[number])
    return found


@compiled
def _gather(
    strings: Strings,
    begins: Integers,
    ends: Integers,
    sentences: Integers,
    length: int,
    numbers: Integers,
) -> None:
    """Number the phrases of `length` words; write the number of each at its first word."""
    for sentence in range(len(sentences) - 1):
        for first in range(sentences[sentence], sentences[sentence + 1] - length + 1):
            numbers[first] = number_in_pool(strings, begins[first], ends[first + length - 1])


@compiled
def _select(
    block: Bytes, place: int, strings: Strings, longest: int, rows: Integers
) -> tuple[int, int]:
    """Write a row (source, begin, end, field) for each line that may be wanted.

    Args:
        block: lines.
        place: where to begin.
        strings: the phrases.
        longest: words of the longest numbered phrases.
        rows: where to write.

    Returns:
        The number of rows written, and where to go on: behind a line that is `ODD` or `LONGER`,
        else the end of the block.
    """
    count = 0
    known = NO_PHRASE
    last_begin = last_end = 0
    while place < len(block):
        begin = place
        end = line_end(block, begin)
        bar = field_end(block, begin, end)
        first, last = stripped(block, begin, bar)
        if last_end == 0 or not same(block, last_begin, last_end, block, first, last):
            known = _source_number(block, first, last, strings, longest)
            last_begin, last_end = first, last
        place = min(end + 1, len(block))
        if known != NO_PHRASE or place - begin > LONGEST_LINE:
            rows[count, 0] = known
            rows[count, 1] = begin
            rows[count, 2] = place
            rows[count, 3] = min(bar + 3, place)
            count += 1
            if known < NO_PHRASE:
                break
    return count, place


@helper
def _source_number(block: Bytes, first: int, last: int, strings: Strings, longest: int) -> int:
    """Return the number of a source field, or the reason why it has none."""
    words = 1
    for place in range(first, last):
        byte = block[place]
        words += byte == SPACE
        if byte in (TAB, BAR) or (byte == SPACE and block[place + 1] == SPACE):
            return ODD
    if words > longest:
        return LONGER
    number: int = strings.slots[slot_of(strings, block, first, last)] - 1
    return number


def surface_words(text: bytes) -> list[bytes]:
    """Return the words of a text; of a token with factors (`a|b`) the first one, like Moses."""
    return surface(tokens(text))


def surface(words: Sentence) -> list[bytes]:
    """Return the first factor of each token."""
    return [word.partition(b"|")[0] if b"|" in word else word for word in words]
