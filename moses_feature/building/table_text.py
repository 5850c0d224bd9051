"""Lines of phrase and reordering tables, put together from numbers by compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.building.bitext import Ids, NumberedText
from moses_feature.building.extraction import Extraction
from moses_feature.building.phrase_numbers import PhraseNumbers
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import INT_0, compiled, helper

SPACE, TAB, HYPHEN, ZERO, NEW_LINE = b" \t-0\n"
BETWEEN = np.frombuffer(b" ||| ", dtype=np.uint8)
FIXED = 3 * len(BETWEEN) + 32
"""Bytes of a line besides words, numbers and links, at most."""
LINK = 12
"""Bytes of a link, at most."""


class Pool(NamedTuple):
    """Texts, one after the other: text n is `content[offsets[n] : offsets[n + 1]]`."""

    content: Bytes
    offsets: Integers

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Pool:
        """Put texts together."""
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(texts), dtype=np.uint8), offsets)


class TableSide(NamedTuple):
    """The phrases of a side: its words, its text, and where each phrase stands in it."""

    words: Pool
    ids: NDArray[np.int32]
    place: NDArray[np.int32]
    length: NDArray[np.int8]

    @classmethod
    def of(cls, text: NumberedText, phrases: PhraseNumbers) -> TableSide:
        """Return the phrases of a text."""
        return cls(Pool.of(text.words), text.ids, phrases.place, phrases.length)


class Numbers(NamedTuple):
    """Cells of lines: `number` (columns, lines) are the numbers of their texts in `pool`."""

    pool: Pool
    number: NDArray[np.int32]

    @classmethod
    def of(cls, columns: Sequence[NDArray[np.floating]], form: bytes = b"%.6g") -> Numbers:
        """Return the texts of columns of values."""
        values = np.stack(columns)
        distinct, number = np.unique(values, return_inverse=True)
        texts = [form % value for value in distinct.tolist()]
        return cls(Pool.of(texts), number.reshape(values.shape).astype(np.int32))


class LinksOfLines(NamedTuple):
    """The links of each line: from the first up to the last, less the places of the phrases."""

    links: NDArray[np.int16]
    first: Integers
    end: Integers
    source: Integers
    target: Integers


class BuiltTableWriter:
    """Writes lines about the phrase pairs of an extraction."""

    def __init__(self, extraction: Extraction) -> None:
        bitext = extraction.bitext
        self._sides = (
            TableSide.of(bitext.source, extraction.source),
            TableSide.of(bitext.target, extraction.target),
        )

    def lines(
        self,
        source: Ids,
        target: Ids | None,
        numbers: Numbers,
        scores: int,
        links: LinksOfLines | None = None,
        ending: bytes = b"",
    ) -> bytes:
        """Return lines `source ||| target ||| scores`, and behind them ` ||| links ||| counts`.

        Args:
            source: (n,) the number of each line's source phrase.
            target: (n,) that of its target phrase; None for lines without it.
            numbers: scores, and behind them counts.
            scores: how many of them are scores.
            links: the links of each line; None for lines of three fields.
            ending: the text behind the last number.
        """
        none = np.zeros(0, dtype=np.int64)
        target = np.zeros(0, dtype=np.int32) if target is None else target
        of_links = links or LinksOfLines(np.zeros((0, 2), np.int16), *(4 * (none,)))
        end = np.frombuffer(ending + b"\n", dtype=np.uint8)
        given = (self._sides, source, target, numbers, of_links, end)
        content = np.empty(_size(*given), dtype=np.uint8)
        return content[: _write(*given, scores, content)].tobytes()


def arpa_lines(grams: TableSide, numbers: Numbers) -> bytes:
    """Return lines of an ARPA file: log10 p, an n-gram, and if there is one a back-off weight.

    Args:
        grams: the n-grams.
        numbers: one column or two.
    """
    room = sum(int(np.diff(numbers.pool.offsets)[column].sum()) for column in numbers.number)
    size = _size_of_phrases(grams) + room + 3 * len(grams.place)
    content = np.empty(size, dtype=np.uint8)
    return content[: _write_arpa(grams, numbers, content)].tobytes()


@compiled
def _size_of_phrases(phrases: TableSide) -> int:
    size = 0
    for phrase in range(len(phrases.place)):
        size += _phrase_size(phrases, phrase)
    return size


@compiled
def _write_arpa(grams: TableSide, numbers: Numbers, content: Bytes) -> int:
    """Write the lines; return how many bytes they have."""
    at = INT_0
    for line in range(len(grams.place)):
        for column in range(len(numbers.number)):
            text = numbers.number[column, line]
            first, last = numbers.pool.offsets[text], numbers.pool.offsets[text + 1]
            at = _write_bytes(content, at, numbers.pool.content, first, last)
            if column == 0:
                content[at] = TAB
                at = _write_phrase(content, at + 1, grams, line)
                if len(numbers.number) > 1:
                    content[at] = TAB
                    at += 1
        content[at] = NEW_LINE
        at += 1
    return at


@compiled
def _size(
    sides: tuple[TableSide, TableSide],
    source: Ids,
    target: Ids,
    numbers: Numbers,
    links: LinksOfLines,
    end: Bytes,
) -> int:
    """Return the most bytes that the lines can have."""
    size = 0
    for line in range(len(source)):
        size += _phrase_size(sides[0], source[line]) + FIXED + len(end)
        if len(target):
            size += _phrase_size(sides[1], target[line])
        for column in range(len(numbers.number)):
            text = numbers.number[column, line]
            size += 1 + numbers.pool.offsets[text + 1] - numbers.pool.offsets[text]
        if len(links.first):
            size += LINK * (links.end[line] - links.first[line])
    return size


@helper
def _phrase_size(side: TableSide, phrase: int) -> int:
    size = 0
    for place in range(side.place[phrase], side.place[phrase] + side.length[phrase]):
        word = side.ids[place]
        size += 1 + side.words.offsets[word + 1] - side.words.offsets[word]
    return size


@compiled
def _write(
    sides: tuple[TableSide, TableSide],
    source: Ids,
    target: Ids,
    numbers: Numbers,
    links: LinksOfLines,
    end: Bytes,
    scores: int,
    content: Bytes,
) -> int:
    """Write the lines; return how many bytes they have."""
    at = INT_0
    for line in range(len(source)):
        at = _write_phrase(content, at, sides[0], source[line])
        at = _write_bytes(content, at, BETWEEN, INT_0, len(BETWEEN))
        if len(target):
            at = _write_phrase(content, at, sides[1], target[line])
            at = _write_bytes(content, at, BETWEEN, INT_0, len(BETWEEN))
        for column in range(len(numbers.number)):
            if column == scores and len(links.first):
                at = _write_bytes(content, at, BETWEEN, INT_0, len(BETWEEN))
                at = _write_links(content, at, links, line)
                at = _write_bytes(content, at, BETWEEN, INT_0, len(BETWEEN))
            elif column > 0:
                content[at] = SPACE
                at += 1
            text = numbers.number[column, line]
            first, last = numbers.pool.offsets[text], numbers.pool.offsets[text + 1]
            at = _write_bytes(content, at, numbers.pool.content, first, last)
        at = _write_bytes(content, at, end, INT_0, len(end))
    return at


@helper
def _write_bytes(content: Bytes, at: int, text: Bytes, first: int, last: int) -> int:
    for place in range(first, last):
        content[at] = text[place]
        at += 1
    return at


@helper
def _write_phrase(content: Bytes, at: int, side: TableSide, phrase: int) -> int:
    begin = side.place[phrase]
    for place in range(begin, begin + side.length[phrase]):
        if place > begin:
            content[at] = SPACE
            at += 1
        word = side.ids[place]
        first, last = side.words.offsets[word], side.words.offsets[word + 1]
        at = _write_bytes(content, at, side.words.content, first, last)
    return at


@helper
def _write_links(content: Bytes, at: int, links: LinksOfLines, line: int) -> int:
    for link in range(links.first[line], links.end[line]):
        if link > links.first[line]:
            content[at] = SPACE
            at += 1
        at = _write_number(content, at, links.links[link, 0] - links.source[line])
        content[at] = HYPHEN
        at = _write_number(content, at + 1, links.links[link, 1] - links.target[line])
    return at


@helper
def _write_number(content: Bytes, at: int, number: int) -> int:
    divisor = 1
    while number // divisor >= 10:
        divisor *= 10
    while divisor > 0:
        content[at] = ZERO + (number // divisor) % 10
        at += 1
        divisor //= 10
    return at
