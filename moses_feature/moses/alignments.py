"""Word alignments and the phrases of derivations, as text.

Links such as `0-0 1-2` are source and target positions (Pharaoh format).

Segmentations such as `0-1=0-2 2=3` say that source words 0 and 1 became target words 0 to 2, and
source word 2 target word 3 (`-include-segmentation-in-n-best`; `moses/Manager.cpp`, `OutputNBest`).
Phrases stand in the order of the translation. A phrase ends where the next one starts: one without
target words is written as if it had one (or, at the start, a number of words that has wrapped
around).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled, part
from moses_feature.runtime.errors import shown

MALFORMED, OUTSIDE = -2, -3
SPACE, TAB, HYPHEN, ZERO, NINE = b" \t-09"
PLACES = 20
"""Bits for the place of a source word in a link that is one number; above stands the target's."""


def links_of(alignment: bytes, source: int, target: int) -> Integers:
    """Return the links as numbers, each once, in the order of target and then source places.

    Args:
        alignment: links such as `0-0 1-2`, source and target place, in any order.
        source: how many source words there are.
        target: how many target words.

    Raises:
        ValueError: it is something else or names other places; the message is what was expected
            and what was found, as two arguments.
    """
    links = np.empty(len(alignment) // 3 + 1, np.int64)
    count = _read(np.frombuffer(alignment, dtype=np.uint8), source, target, links)
    if count < 0:
        raise ValueError(*what_is_wrong(count, alignment, source, target))
    return np.unique(links[:count])


def places_of(links: Integers) -> tuple[Integers, Integers]:
    """Return the source and the target places of links that are numbers."""
    return links & ((1 << PLACES) - 1), links >> PLACES


def what_is_wrong(result: int, alignment: bytes, source: int, target: int) -> tuple[str, str]:
    """Return what was expected and what was found when `read_links` failed."""
    if result == MALFORMED:
        return "word alignments, such as 0-0 1-1", shown(alignment)
    return f"links between {source} source and {target} target words", shown(alignment)


@compiled
def _read(text: Bytes, source: int, target: int, links: Integers) -> int:
    return read_links(text, 0, len(text), source, target, links)


@part
def read_links(text: Bytes, begin: int, end: int, source: int, target: int, links: Integers) -> int:
    """Write links as numbers, in the order of the text; return how many, below 0 if it is bad.

    Args:
        text: in which the links stand.
        begin: where they begin …
        end: … and end.
        source: how many source words there are.
        target: how many target words.
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


@part
def _read_place(text: Bytes, place: int, end: int) -> tuple[int, int]:
    """Return a number, -1 if there is none, and where it ends."""
    first = place
    number = 0
    while place < end and ZERO <= text[place] <= NINE:
        number = min(10 * number + text[place] - ZERO, (1 << PLACES) - 1)
        place += 1
    return number if place > first else -1, place


_PHRASE = re.compile(rb"(\d{1,9})(?:-(\d{1,9}))?=(\d{1,9})(?:-\d+)?")


class PhrasePlace(NamedTuple):
    """Where a phrase pair stands in a sentence pair.

    Attributes:
        source, source_end: its source words, the end left out.
        target, target_end: its target words, the end left out.
    """

    source: int
    source_end: int
    target: int
    target_end: int


def read_segmentation(text: bytes, source_words: int, target_words: int) -> list[PhrasePlace]:
    """Return the phrases of a translation, in its order.

    Args:
        text: as Moses writes it.
        source_words: how many there are.
        target_words: how many there are.

    Raises:
        ValueError: the phrases are not those of such a sentence pair; says what was expected, and
            what was found.
    """
    matches = [(part, _PHRASE.fullmatch(part)) for part in text.split()]
    bad = next((part for part, match in matches if match is None), None)
    if bad is not None:
        raise ValueError("phrases such as 0-1=0-2", bad.decode(errors="replace"))
    numbers = [[int(n) if n else -1 for n in match.groups()] for _, match in matches if match]
    ends = [*(start for _, _, start in numbers[1:]), target_words][: len(numbers)]
    places = [
        PhrasePlace(first, max(first, last) + 1, start, end)
        for (first, last, start), end in zip(numbers, ends, strict=True)
    ]
    if not _is_whole(places, source_words, target_words):
        expected = f"phrases that cover {source_words} source and {target_words} target words once"
        raise ValueError(expected, text.strip().decode(errors="replace"))
    return places


def write_segmentation(places: Iterable[PhrasePlace]) -> bytes:
    """Return the phrases as Moses writes them."""
    return b" ".join(
        _span(source, source_end) + b"=" + _span(target, target_end)
        for source, source_end, target, target_end in places
    )


def _span(first: int, end: int) -> bytes:
    return b"%d" % first if end <= first + 1 else b"%d-%d" % (first, end - 1)


def _is_whole(places: Sequence[PhrasePlace], source_words: int, target_words: int) -> bool:
    covered = sorted(word for place in places for word in range(place.source, place.source_end))
    in_order = all(place.target <= place.target_end for place in places)
    begins = not places or places[0].target == 0
    return covered == list(range(source_words)) and in_order and (begins or not target_words)
