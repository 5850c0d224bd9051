"""Find the fields of many lines of a phrase table at once, in compiled code.

It recognises lines as Moses' training writes them. Lines that are bad or only unusual are left to
`moses/phrase_table.py`, which reads them and reports errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from moses_feature.moses.words import LONGEST_PHRASE
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled, inner

MOST_FIELDS = 7
_SPACE, _TAB, _NEW_LINE, _RETURN, _BAR, _BRACKET = 32, 9, 10, 13, 124, 93
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _E, _SMALL_E = 43, 45, 46, 48, 57, 69, 101


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
        for score_end, line_end, column in zip(*ends, columns, strict=True):
            yield self.content[begin:score_end]
            yield b" " + column
            yield self.content[score_end:line_end]
            begin = line_end


class _Found(NamedTuple):
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
    found = _Found(
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
def _scan(text: Bytes, scores: int, found: _Found) -> bool:
    begin = 0
    for line in range(len(found.line_ends)):
        end = begin
        while end < len(text) and text[end] != _NEW_LINE:
            end += 1
        first = begin
        for side in range(2):
            last = _field_end(text, first, end)
            if last == end or not _words(text, first, last, side, line, found):
                return False
            first = last + 3
        last = _field_end(text, first, end)
        found.score_ends[line] = _scores_end(text, first, last, scores)
        if found.score_ends[line] < 0:
            return False
        fields = 3
        while last < end:
            fields += 1
            last = _field_end(text, last + 3, end)
        if fields > MOST_FIELDS:
            return False
        begin = min(end + 1, len(text))
        found.line_ends[line] = begin
    return begin == len(text)


@inner
def _field_end(text: Bytes, first: int, end: int) -> int:
    """Return where the next ||| begins; `end` if there is none."""
    for place in range(first, end - 2):
        if text[place] == _BAR and text[place + 1] == _BAR and text[place + 2] == _BAR:
            return place
    return end


@inner
def _words(text: Bytes, first: int, last: int, side: int, line: int, found: _Found) -> bool:
    """Write the positions of the words of a phrase."""
    begun = found.offsets[side, line]
    count = begun
    place = first
    while place < last:
        if text[place] == _SPACE:
            place += 1
            continue
        found.words[side, count, 0] = place
        while place < last and text[place] != _SPACE:
            byte = text[place]
            if byte in (_TAB, _RETURN) or (byte == _BRACKET and side == 0):
                return False
            place += 1
        found.words[side, count, 1] = place
        count += 1
    found.offsets[side, line + 1] = count
    return bool(count - begun <= LONGEST_PHRASE)


@inner
def _scores_end(text: Bytes, first: int, last: int, scores: int) -> int:
    """Return where the last score ends; -1 if the number of scores is wrong or one is bad."""
    place, found, end = first, 0, first
    while place < last:
        if text[place] == _SPACE:
            place += 1
            continue
        place = _number_end(text, place, last)
        if place < 0:
            return -1
        found += 1
        end = place
    return end if found == scores else -1


@inner
def _number_end(text: Bytes, place: int, last: int) -> int:
    """Return where a number ends, -1 if no space or end of the field follows it."""
    if text[place] == _PLUS or text[place] == _MINUS:
        place += 1
    whole = _digits_end(text, place, last)
    digits = whole - place
    place = whole
    if place < last and text[place] == _POINT:
        fraction = _digits_end(text, place + 1, last)
        digits += fraction - place - 1
        place = fraction
    if digits == 0:
        return -1
    if place < last and (text[place] == _E or text[place] == _SMALL_E):
        place += 1
        if place < last and (text[place] == _PLUS or text[place] == _MINUS):
            place += 1
        exponent = _digits_end(text, place, last)
        if exponent == place:
            return -1
        place = exponent
    return place if place == last or text[place] == _SPACE else -1


@inner
def _digits_end(text: Bytes, place: int, last: int) -> int:
    while place < last and _ZERO <= text[place] <= _NINE:
        place += 1
    return place
