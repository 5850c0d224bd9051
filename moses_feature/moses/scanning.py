"""Fields and numbers in blocks of table lines, found by compiled code."""

from __future__ import annotations

from moses_feature.runtime.arrays import Bytes
from moses_feature.runtime.compiled import helper

SPACE, TAB, NEW_LINE, CARRIAGE_RETURN, BAR = b" \t\n\r|"
MINUS, PLUS, POINT, ZERO, NINE, SMALL_E, LARGE_E = b"-+.09eE"
MOST_EXACT = 1 << 53
"""Whole numbers up to this one are exact as doubles; `read_digits` stops counting there."""


@helper
def field_end(text: Bytes, place: int, end: int) -> int:
    """Return where the field that begins at a place ends: at the next `|||`, or at `end`."""
    while place < end:
        if (
            text[place] == BAR
            and place + 2 < end
            and text[place + 1] == BAR
            and text[place + 2] == BAR
        ):
            return place
        place += 1
    return end


@helper
def line_end(text: Bytes, place: int) -> int:
    """Return where the line feed of a line is; the end of the text if it has none."""
    while place < len(text) and text[place] != NEW_LINE:
        place += 1
    return place


@helper
def stripped(text: Bytes, first: int, last: int) -> tuple[int, int]:
    """Return the begin and end of a field without spaces and tabs around it."""
    while first < last and (text[first] == SPACE or text[first] == TAB):
        first += 1
    while last > first and (text[last - 1] == SPACE or text[last - 1] == TAB):
        last -= 1
    return first, last


@helper
def read_digits(text: Bytes, place: int, end: int, number: int) -> tuple[int, int, int]:
    """Read more digits of a number; return the number, how many they are, and where they end."""
    first = place
    while place < end and ZERO <= text[place] <= NINE:
        number = min(10 * number + text[place] - ZERO, MOST_EXACT)
        place += 1
    return number, place - first, place
