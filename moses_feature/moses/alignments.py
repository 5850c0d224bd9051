"""Word alignments as text: links such as `0-0 1-2`, source and target place (Pharaoh format)."""

from __future__ import annotations

import numpy as np

from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import INT_0, compiled, helper
from moses_feature.runtime.errors import shown

MALFORMED, OUTSIDE = -2, -3
SPACE, TAB, HYPHEN, ZERO, NINE = b" \t-09"
BETWEEN = b"\t"
"""Stands between the alignments of a sentence pair that has several."""
PLACES = 20
"""A link is one number: its lowest bits are the source place, the bits above the target place."""


def links_of(alignment: bytes, source: int, target: int) -> Integers:
    """Return the links as numbers, each once, sorted by target and then source place.

    Args:
        alignment: links such as `0-0 1-2`, source and target place, in any order.
        source: the number of source words.
        target: the number of target words.

    Raises:
        ValueError: the text is bad or names other places; its two arguments are the expected and
            the found content.
    """
    links = np.empty(len(alignment) // 3 + 1, np.int64)
    count = _read(np.frombuffer(alignment, dtype=np.uint8), source, target, links)
    if count < 0:
        raise ValueError(*what_is_wrong(count, alignment, source, target))
    return np.unique(links[:count])


def places_of(links: Integers) -> tuple[Integers, Integers]:
    """Return the source and the target places of links given as numbers."""
    return links & ((1 << PLACES) - 1), links >> PLACES


def what_is_wrong(result: int, alignment: bytes, source: int, target: int) -> tuple[str, str]:
    """Return the expected and the found content when `read_links` failed."""
    if result == MALFORMED:
        return "word alignments, such as 0-0 1-1", shown(alignment)
    return f"links between {source} source and {target} target words", shown(alignment)


@compiled
def _read(text: Bytes, source: int, target: int, links: Integers) -> int:
    return read_links(text, INT_0, len(text), source, target, links)


@helper(inline=False)
def read_links(text: Bytes, begin: int, end: int, source: int, target: int, links: Integers) -> int:
    """Write links as numbers, in the order of the text; return their count, negative if bad.

    Args:
        text: contains the links.
        begin: where they begin.
        end: where they end.
        source: the number of source words.
        target: the number of target words.
        links: (bytes of the text // 3 + 1,) or more, overwritten.
    """
    count = 0
    place = begin
    while True:
        while place < end and (text[place] == SPACE or text[place] == TAB):
            place += 1
        if place == end:
            return count
        of_source, place = _read_place(text, place, end)
        if of_source < 0 or place == end or text[place] != HYPHEN:
            return MALFORMED
        of_target, place = _read_place(text, place + 1, end)
        if of_target < 0 or (place < end and text[place] != SPACE and text[place] != TAB):
            return MALFORMED
        if of_source >= source or of_target >= target:
            return OUTSIDE
        links[count] = (of_target << PLACES) + of_source
        count += 1


@helper(inline=False)
def _read_place(text: Bytes, place: int, end: int) -> tuple[int, int]:
    """Return a number (-1 if there is none), and where it ends."""
    first = place
    number = 0
    while place < end and ZERO <= text[place] <= NINE:
        number = min(10 * number + text[place] - ZERO, (1 << PLACES) - 1)
        place += 1
    return number if place > first else -1, place
