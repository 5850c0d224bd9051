"""Walls and zones of marked sentences, compiled; follows `moses/ReorderingConstraint.cpp`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_feature.moses.xml_input import MarkedSentence
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import helper


class Constraints(NamedTuple):
    """What limits the order of a sentence; see `reordering_constraints`.

    Attributes:
        walls: (n,) for each word whether there is a wall behind it, and in which zone; empty if
            there are neither walls nor zones.
        zones: (zones, 2) first and last word.
    """

    walls: Integers
    zones: Integers


NO_ZONE, EVERYWHERE = -1, -2
"""A word without a wall behind it; one with a wall that holds outside zones, too."""
NONE = Constraints(np.zeros(0, np.int64), np.zeros((0, 2), np.int64))


def constraints_of(marked: MarkedSentence) -> Constraints:
    """Return the walls and zones of a sentence.

    A wall in a zone holds in this zone alone, the innermost one.
    """
    if not (marked.walls or marked.zones):
        return NONE
    walls = np.full(len(marked.words), NO_ZONE)
    walls[[wall for wall in marked.walls if wall < len(walls)]] = EVERYWHERE
    for number, (first, last) in enumerate(marked.zones):
        for place in range(first, last):
            of = walls[place]
            if of == EVERYWHERE or (of >= 0 and not _is_within(marked.zones[of], first, last)):
                walls[place] = number
    return Constraints(walls, np.array(marked.zones, np.int64).reshape(-1, 2))


def _is_within(zone: tuple[int, int], first: int, last: int) -> bool:
    return zone[0] >= first and zone[1] <= last


@helper
def is_allowed(
    constraints: Constraints, limit: int, gap: int, mask: int, start: int, length: int
) -> bool:
    """Return whether a span may be translated next.

    Args:
        constraints: of the sentence.
        limit: the longest jump in source words.
        gap: the first uncovered word.
        mask: bits of the covered words from there on.
        start: the first word of the span.
        length: the number of its words.
    """
    walls, zones = constraints.walls, constraints.zones
    if start == gap and mask == 0:
        return True
    if start != gap:
        for place in range(gap, start + length - 1):
            if walls[place] == EVERYWHERE:
                return False
    last = gap - 1
    while mask >> (last + 1 - gap) != 0:
        last += 1
    for zone in range(len(zones)):
        if not _zone_allows(constraints, limit, zone, gap, mask, last, start, start + length - 1):
            return False
    return True


@helper
def _zone_allows(
    constraints: Constraints,
    limit: int,
    zone: int,
    gap: int,
    mask: int,
    last: int,
    start: int,
    end: int,
) -> bool:
    """Return whether a zone allows a span.

    Args:
        constraints: of the sentence.
        limit: the longest jump in source words.
        zone: the number of the zone.
        gap: the first uncovered word.
        mask: bits of the covered words from there on.
        last: the last covered word.
        start: the first word of the span.
        end: the last word of the span.
    """
    first_of, last_of = constraints.zones[zone]
    beside = end < first_of or start > last_of
    covered = max(gap - first_of, 0)
    for place in range(max(gap, first_of), min(last, last_of) + 1):
        covered += (mask >> (place - gap)) & 1
    left = last_of - first_of + 1 - covered
    if gap > last_of or left == 0:
        return True  # it is done
    if beside:
        return bool(covered == 0)  # else it is left before its end
    if start != gap and last_of - gap >= limit:
        return False  # the way back would be too far
    if start <= first_of:
        return True
    if end > last_of:
        return bool(last_of - start + 1 >= left)
    return _keeps_walls(constraints.walls, zone, gap, mask, first_of, start, end)


@helper
def _keeps_walls(
    walls: Integers, zone: int, gap: int, mask: int, first: int, start: int, end: int
) -> bool:
    """Return whether no word of a zone is left uncovered before a wall that the span is behind."""
    uncovered = False
    for place in range(first, end):
        if gap <= place < start and (mask >> (place - gap)) & 1 == 0:
            uncovered = True
        if uncovered and walls[place] == zone:
            return False
    return True
