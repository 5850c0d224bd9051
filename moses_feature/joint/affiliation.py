"""Which source word a target word belongs to, from word alignments.

Moses' rule (`moses/LM/BilingualLM.cpp`), which is that of Devlin et al. 2014 but for its reach:
of the source words that a word is aligned to the middle one, of an even number the one before the
middle; a word without any takes those of the nearest word that has some, of two as near the right
one.
"""

from __future__ import annotations

import numpy as np

from moses_feature.arrays import Bytes, Integers
from moses_feature.compiled import compiled, part
from moses_feature.errors import shown

NO_LINK, MALFORMED, OUTSIDE = -1, -2, -3
SPACE, TAB, HYPHEN, ZERO, NINE = b" \t-09"
PLACES = 20
"""Bits for the place of a source word."""


def affiliations(alignment: bytes, source: int, target: int) -> Integers:
    """Return the place of the source word that each target word belongs to.

    Args:
        alignment: links such as `0-0 1-2`, source and target place, in any order.
        source: how many source words there are.
        target: how many target words.

    Raises:
        ValueError: it is something else, names other places, or is empty beside target words; the
            message is what was expected and what was found, as two arguments.
    """
    found = np.empty(target, dtype=np.int64)
    text = np.frombuffer(alignment, dtype=np.uint8)
    result = affiliate(text, 0, len(text), source, found)
    if result < 0:
        raise ValueError(*what_is_wrong(result, alignment, source, target))
    return found


def what_is_wrong(result: int, alignment: bytes, source: int, target: int) -> tuple[str, str]:
    """Return what was expected and what was found when `affiliate` failed."""
    if result == NO_LINK:
        return "word alignments, such as 0-0 1-1", "none"
    if result == MALFORMED:
        return "word alignments, such as 0-0 1-1", shown(alignment)
    return f"links between {source} source and {target} target words", shown(alignment)


@compiled
def affiliate(text: Bytes, begin: int, end: int, source: int, found: Integers) -> int:
    """Write the affiliations (target words,) of a text of links; return less than 0 if it is bad.

    Args:
        text: in which the links stand.
        begin: where they begin …
        end: … and end.
        source: how many source words there are.
        found: overwritten.
    """
    target = len(found)
    links = np.empty((end - begin) // 3 + 1, np.int64)
    count = _read_links(text, begin, end, source, target, links)
    if count < 0:
        return count
    if count == 0:
        return NO_LINK if target > 0 else 0
    links = np.sort(links[:count])
    found[:] = NO_LINK
    first = 0
    while first < count:
        word = links[first] >> PLACES
        last = kept = first  # of the same link twice, one is kept
        while last < count and links[last] >> PLACES == word:
            if links[last] != links[kept]:
                kept += 1
                links[kept] = links[last]
            last += 1
        found[word] = links[first + (kept - first) // 2] & ((1 << PLACES) - 1)
        first = last
    _take_nearest(found)
    return count


@part
def _read_links(
    text: Bytes, begin: int, end: int, source: int, target: int, links: Integers
) -> int:
    """Write links, numbers that are in the order of their target words; return how many."""
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


@part
def _read_place(text: Bytes, place: int, end: int) -> tuple[int, int]:
    """Return a number, -1 if there is none, and where it ends."""
    first = place
    number = 0
    while place < end and ZERO <= text[place] <= NINE:
        number = min(10 * number + text[place] - ZERO, (1 << PLACES) - 1)
        place += 1
    return number if place > first else -1, place


@part
def _take_nearest(found: Integers) -> None:
    """Give each word without a link what the nearest one has; there must be one."""
    own = found.copy()
    for word in range(len(found)):
        distance = 0
        while found[word] == NO_LINK:
            distance += 1
            if word + distance < len(own) and own[word + distance] != NO_LINK:
                found[word] = own[word + distance]
            elif word - distance >= 0:
                found[word] = own[word - distance]
