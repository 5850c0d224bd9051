"""Find the fields of many lines of a phrase table at once, in compiled code.

It recognises lines as Moses' training writes them. Lines that are bad or only unusual are left to
`moses/phrase_table.py`, which reads them and reports errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from moses_feature.moses.scanning import (
    CARRIAGE_RETURN,
    LARGE_E,
    MINUS,
    PLUS,
    POINT,
    SMALL_E,
    SPACE,
    TAB,
    field_end,
    line_end,
    read_digits,
)
from moses_feature.moses.words import LONGEST_PHRASE
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import INT_0, compiled, helper

MOST_FIELDS = 7
_BRACKET = ord("]")


@dataclass(frozen=True)
class ScannedLines:
    """The positions of the fields in n lines.

    Attributes:
        content: the lines.
        source, target: (words, 2) where each word of the phrases begins and ends.
        source_offsets, target_offsets: (n + 1,) the first word of each phrase.
        score_ends: (n,) where the last score of each line ends.
        line_ends: (n,) where the next line begins.
    """

    content: bytes
    source: Integers
    target: Integers
    source_offsets: Integers
    target_offsets: Integers
    score_ends: Integers
    line_ends: Integers

    def grown(self, columns: Iterable[bytes]) -> Iterator[bytes]:
        """Yield pieces of the lines, with `columns` behind the last score of each line."""
        begin = 0
        ends = self.score_ends.tolist(), self.line_ends.tolist()
        for score_end, behind, column in zip(*ends, columns, strict=True):
            yield self.content[begin:score_end]
            yield b" " + column
            yield self.content[score_end:behind]
            begin = behind


class _Places(NamedTuple):
    words: Integers
    offsets: Integers
    score_ends: Integers
    line_ends: Integers


def scan(content: bytes, lines: int, scores: int) -> ScannedLines | None:
    """Find the fields in lines of a phrase table; return None if a line is unusual.

    Args:
        content: the lines, the last one with a line end or without.
        lines: the number of lines.
        scores: the expected number of scores in each.
    """
    text = np.frombuffer(content, dtype=np.uint8)
    room = len(content) // 2 + lines + 1  # a word takes at least a byte and a space
    found = _Places(
        np.empty((2, room, 2), dtype=np.int64),
        np.zeros((2, lines + 1), dtype=np.int64),
        np.empty(lines, dtype=np.int64),
        np.empty(lines, dtype=np.int64),
    )
    if not _scan(text, scores, found):
        return None
    source, target = (found.words[side, : found.offsets[side, -1]] for side in range(2))
    ends = found.score_ends, found.line_ends
    return ScannedLines(content, source, target, found.offsets[0], found.offsets[1], *ends)


@compiled
def _scan(text: Bytes, scores: int, found: _Places) -> bool:
    begin = INT_0
    for line in range(len(found.line_ends)):
        end = line_end(text, begin)
        first = begin
        for side in range(2):
            last = field_end(text, first, end)
            if last == end or not _words(text, first, last, side, line, found):
                return False
            first = last + 3
        last = field_end(text, first, end)
        found.score_ends[line] = _scores_end(text, first, last, scores)
        if found.score_ends[line] < 0:
            return False
        fields = 3
        while last < end:
            fields += 1
            last = field_end(text, last + 3, end)
        if fields > MOST_FIELDS:
            return False
        begin = min(end + 1, len(text))
        found.line_ends[line] = begin
    return begin == len(text)


@helper
def _words(text: Bytes, first: int, last: int, side: int, line: int, found: _Places) -> bool:
    """Write the positions of the words of a phrase."""
    begun = found.offsets[side, line]
    count = begun
    place = first
    while place < last:
        if text[place] == SPACE:
            place += 1
            continue
        found.words[side, count, 0] = place
        while place < last and text[place] != SPACE:
            byte = text[place]
            if byte in (TAB, CARRIAGE_RETURN) or (byte == _BRACKET and side == 0):
                return False
            place += 1
        found.words[side, count, 1] = place
        count += 1
    found.offsets[side, line + 1] = count
    return bool(count - begun <= LONGEST_PHRASE)


@helper
def _scores_end(text: Bytes, first: int, last: int, scores: int) -> int:
    """Return where the last score ends; -1 if the number of scores is wrong or one is bad."""
    place, found, end = first, 0, first
    while place < last:
        if text[place] == SPACE:
            place += 1
            continue
        place = _number_end(text, place, last)
        if place < 0:
            return -1
        found += 1
        end = place
    return end if found == scores else -1


@helper
def _number_end(text: Bytes, place: int, last: int) -> int:
    """Return where a number ends, -1 if no space or end of the field follows it."""
    if text[place] == PLUS or text[place] == MINUS:
        place += 1
    _, digits, place = read_digits(text, place, last, INT_0)
    if place < last and text[place] == POINT:
        _, fraction, place = read_digits(text, place + 1, last, INT_0)
        digits += fraction
    if digits == 0:
        return -1
    if place < last and (text[place] == LARGE_E or text[place] == SMALL_E):
        place += 1
        if place < last and (text[place] == PLUS or text[place] == MINUS):
            place += 1
        _, exponent, place = read_digits(text, place, last, INT_0)
        if exponent == 0:
            return -1
    return place if place == last or text[place] == SPACE else -1
