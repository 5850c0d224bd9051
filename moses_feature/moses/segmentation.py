"""The phrases of a translation as text (`-include-segmentation-in-n-best`; `moses/Manager.cpp`).

`0-1=0-2 2=3` says that source words 0 and 1 became target words 0 to 2, and source word 2 target
word 3. Phrases are in the order of the translation. A phrase ends where the next one starts; Moses
writes a phrase without target words as if it had one (or, at the start, with an index that has
wrapped around).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_PHRASE = re.compile(rb"(\d{1,9})(?:-(\d{1,9}))?=(\d{1,9})(?:-\d+)?")


class PhrasePlace(NamedTuple):
    """The place of a phrase pair in a sentence pair.

    Attributes:
        source, source_end: its source words, the end excluded.
        target, target_end: its target words, the end excluded.
    """

    source: int
    source_end: int
    target: int
    target_end: int


def read_segmentation(text: bytes, source_words: int, target_words: int) -> list[PhrasePlace]:
    """Return the phrases of a translation, in its order.

    Args:
        text: in Moses' format.
        source_words: the number of source words.
        target_words: the number of target words.

    Raises:
        ValueError: the phrases are not those of such a sentence pair; says what was expected and
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
    """Return the phrases in Moses' format."""
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
