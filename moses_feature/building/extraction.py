"""Phrase pairs that are consistent with the links (Och and Ney 2004), as Moses extracts them.

Follows `phrase-extract/extract-main.cpp`: a pair covers all links of its words, one at least, and
grows over words without links at the ends of its source side. How it is placed beside the phrases
before and behind it, for lexicalised reordering, is told by the links of single words
(`getOrientWordModel`), or by the phrases that stand there (`getOrientPhraseModel`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.building.bitext import Bitext, Ids
from moses_feature.building.phrase_numbers import PhraseNumbers
from moses_feature.decoder.reordering import DISCONTINUOUS_LEFT, DISCONTINUOUS_RIGHT, MONOTONE, SWAP
from moses_feature.runtime.arrays import Flags, Integers
from moses_feature.runtime.compiled import compiled, helper
from moses_feature.runtime.disk_arrays import filled
from moses_feature.runtime.processes import cores


class Occurrences(NamedTuple):
    """Phrase pairs where they occur.

    Attributes:
        source, target: (n,) numbers of the phrases.
        source_place, target_place: (n,) where they begin in their sentences.
        first_link, last_link: (n,) the first of their links, and the first behind them.
        before, behind: (n,) orientation towards the phrase before and behind.
    """

    source: Ids
    target: Ids
    source_place: NDArray[np.int16]
    target_place: NDArray[np.int16]
    first_link: Ids
    last_link: Ids
    before: NDArray[np.int8]
    behind: NDArray[np.int8]

    @classmethod
    def empty(cls, count: int, folder: Path | None) -> Occurrences:
        """Return room for so many, in a folder; in memory if there is none."""
        kinds = (np.int32, np.int32, np.int16, np.int16, np.int32, np.int32, np.int8, np.int8)
        columns: list[Any] = [filled(0, count, kind, folder) for kind in kinds]
        return cls(*columns)

    def between(self, first: int, end: int) -> Occurrences:
        """Return some of them."""
        columns: list[Any] = [column[first:end] for column in self]
        return Occurrences(*columns)


class _Arrays(NamedTuple):
    """The arrays of a bitext and of its phrases; see `Bitext` and `PhraseNumbers`."""

    source_offsets: Integers
    target_offsets: Integers
    links: NDArray[np.int16]
    link_offsets: Integers
    source_at: NDArray[np.int32]
    target_at: NDArray[np.int32]


class Extraction:
    """The phrase pairs of a bitext.

    Args:
        bitext: the sentences.
        longest: words of a phrase.
        by_phrases: whether orientations are those of the phrase-based model.
        folder: where all but the bitext is kept; None for memory.

    Attributes:
        bitext: the sentences.
        source, target: their phrases.
        found: the pairs in the order of the sentences.
        offsets: (sentences + 1,) the first pair of each sentence.
    """

    def __init__(
        self, bitext: Bitext, longest: int, by_phrases: bool = False, folder: Path | None = None
    ) -> None:
        self.bitext = bitext
        self.source = PhraseNumbers.of_text(bitext.source, longest, folder)
        self.target = PhraseNumbers.of_text(bitext.target, longest, folder)
        self._folder = folder
        texts = bitext.source.offsets, bitext.target.offsets
        arrays = _Arrays(*texts, bitext.links, bitext.link_offsets, self.source.at, self.target.at)
        self.offsets = np.zeros(len(bitext) + 1, dtype=np.int64)
        bounds = np.linspace(0, len(bitext), 4 * cores() + 1).astype(np.int64)
        with ThreadPoolExecutor(cores()) as threads:

            def divide(work: Callable[..., None], *given: Any) -> None:
                """Do something for the sentences of each share."""
                for _ in threads.map(partial(work, arrays, *given), bounds[:-1], bounds[1:]):
                    pass

            divide(_count_pairs, self.offsets)
            np.cumsum(self.offsets, out=self.offsets)
            self.found = Occurrences.empty(int(self.offsets[-1]), folder)
            divide(_find, by_phrases, self.offsets, self.found)

    def totals(self) -> tuple[Ids, Ids]:
        """Return how often the pairs have each source phrase, and each target phrase."""
        of_source, of_target = (
            filled(0, len(side), np.int32, self._folder) for side in (self.source, self.target)
        )
        _count(self.found, of_source, of_target)
        return of_source, of_target

    def parts(self, of_source: Ids, bounds: list[int]) -> list[Occurrences]:
        """Return the pairs with the source phrases of each part, in the order of the sentences.

        Args:
            of_source: (source phrases,) how many pairs of each there are.
            bounds: the first source phrase of each part, and the end.
        """
        sizes = np.add.reduceat(of_source, bounds[:-1], dtype=np.int64)
        offsets = np.cumsum([0, *sizes.tolist()])
        found = Occurrences.empty(int(offsets[-1]), self._folder)
        _divide(self.found, np.array(bounds), offsets[:-1].copy(), found)
        return [found.between(first, end) for first, end in pairwise(offsets.tolist())]


@compiled
def _count(found: Occurrences, of_source: Ids, of_target: Ids) -> None:
    """Add the pairs to the counts of their phrases."""
    for pair in range(len(found.source)):
        of_source[found.source[pair]] += 1
        of_target[found.target[pair]] += 1


@compiled
def _divide(found: Occurrences, bounds: Integers, ends: Integers, parts: Occurrences) -> None:
    """Write the pairs behind the ends of their parts."""
    for pair in range(len(found.source)):
        source = found.source[pair]
        part = np.searchsorted(bounds, source, side="right") - 1
        to = ends[part]
        ends[part] += 1
        parts.source[to] = source
        parts.target[to] = found.target[pair]
        parts.source_place[to] = found.source_place[pair]
        parts.target_place[to] = found.target_place[pair]
        parts.first_link[to] = found.first_link[pair]
        parts.last_link[to] = found.last_link[pair]
        parts.before[to] = found.before[pair]
        parts.behind[to] = found.behind[pair]


@compiled
def _count_pairs(arrays: _Arrays, counts: Integers, begin: int, end: int) -> None:
    """Write how many pairs some sentences have, each behind the place of its own number."""
    spans, sums = _room(arrays)
    for sentence in range(begin, end):
        counts[sentence + 1] = _spans_of(arrays, sentence, spans, sums)


@compiled
def _find(
    arrays: _Arrays, by_phrases: bool, offsets: Integers, found: Occurrences, begin: int, end: int
) -> None:
    """Write the pairs of some sentences."""
    spans, sums = _room(arrays)
    corners = _room_for_corners(arrays) if by_phrases else np.empty((2, 0, 0), np.bool_)
    for sentence in range(begin, end):
        first_source = arrays.source_offsets[sentence]
        first_target = arrays.target_offsets[sentence]
        size = _spans_of(arrays, sentence, spans, sums)
        if by_phrases:
            _mark_corners(arrays, sentence, spans[:size], corners)
        for span in range(size):
            source, source_end, target, target_end = spans[span]
            pair = offsets[sentence] + span
            found.source[pair] = arrays.source_at[source_end - source, first_source + source]
            found.target[pair] = arrays.target_at[target_end - target, first_target + target]
            found.source_place[pair] = source
            found.target_place[pair] = target
            found.first_link[pair] = _first_link(arrays, sentence, target)
            found.last_link[pair] = _first_link(arrays, sentence, target_end + 1)
            before = source, source_end, target, -1
            behind = source_end, source, target_end, 1
            if by_phrases:
                found.before[pair] = _by_phrases(arrays, sentence, corners, *before)
                found.behind[pair] = _by_phrases(arrays, sentence, corners, *behind)
            else:
                found.before[pair] = _by_words(arrays, sentence, *before)
                found.behind[pair] = _by_words(arrays, sentence, *behind)


@helper(inline=False)
def _room(arrays: _Arrays) -> tuple[Integers, Integers]:
    """Return room for the spans of any sentence, and for a number for each of its words."""
    longest = len(arrays.source_at)
    words = _longest(arrays.source_offsets), _longest(arrays.target_offsets)
    # The links of a target phrase leave at most so many source phrases around them.
    spans = np.empty((words[1] * longest**3, 4), np.int64)
    return spans, np.empty(words[0] + 1, np.int64)


@helper
def _longest(offsets: Integers) -> int:
    """Return the words of the longest sentence; np.diff takes seconds to compile."""
    longest = 0
    for sentence in range(len(offsets) - 1):
        longest = max(longest, offsets[sentence + 1] - offsets[sentence])
    return longest


@helper
def _spans_of(  # noqa: C901  # spans of both sides, one inside the other
    arrays: _Arrays, sentence: int, spans: Integers, sums: Integers
) -> int:
    """Write the phrase pairs of a sentence as places of their first and last words; count them."""
    longest = len(arrays.source_at)
    words = arrays.source_offsets[sentence + 1] - arrays.source_offsets[sentence]
    target_words = arrays.target_offsets[sentence + 1] - arrays.target_offsets[sentence]
    first, end = arrays.link_offsets[sentence], arrays.link_offsets[sentence + 1]
    links = arrays.links
    # sums: the links of the source words before each place
    sums[: words + 1] = 0
    for link in range(first, end):
        sums[links[link, 0] + 1] += 1
    for word in range(words):
        sums[word + 1] += sums[word]
    count = 0
    for target in range(target_words):
        while first < end and links[first, 1] < target:
            first += 1
        low, high, link = words, -1, first
        for target_end in range(target, min(target_words, target + longest)):
            while link < end and links[link, 1] == target_end:
                low, high = min(low, links[link, 0]), max(high, links[link, 0])
                link += 1
            if high < 0:
                continue
            if high - low >= longest:
                break
            if sums[high + 1] - sums[low] != link - first:  # a source word has a link elsewhere
                continue
            source = low
            while (
                source >= 0
                and source > high - longest
                and (source == low or sums[source + 1] == sums[source])
            ):
                source_end = high
                while (
                    source_end < words
                    and source_end < source + longest
                    and (source_end == high or sums[source_end + 1] == sums[source_end])
                ):
                    spans[count, 0], spans[count, 1] = source, source_end
                    spans[count, 2], spans[count, 3] = target, target_end
                    count += 1
                    source_end += 1
                source -= 1
    return count


@helper
def _first_link(arrays: _Arrays, sentence: int, target: int) -> int:
    """Return the first link of a sentence whose target word is this one or a later one."""
    link: int = arrays.link_offsets[sentence]
    end = arrays.link_offsets[sentence + 1]
    while link < end and arrays.links[link, 1] < target:
        link += 1
    return link


@helper(inline=False)
def _room_for_corners(arrays: _Arrays) -> Flags:
    words = _longest(arrays.source_offsets), _longest(arrays.target_offsets)
    return np.empty((2, words[1] + 1, words[0]), np.bool_)


@helper
def _mark_corners(arrays: _Arrays, sentence: int, spans: Integers, corners: Flags) -> None:
    """Mark where phrases of a sentence begin [0] and end [1], by their last target word.

    The row of the target word behind the sentence has none.
    """
    words = arrays.source_offsets[sentence + 1] - arrays.source_offsets[sentence]
    target_words = arrays.target_offsets[sentence + 1] - arrays.target_offsets[sentence]
    corners[:, : target_words + 1, :words] = False
    for span in range(len(spans)):
        source, source_end, _, target_end = spans[span]
        corners[0, target_end, source] = corners[1, target_end, source_end] = True


@helper
def _by_phrases(
    arrays: _Arrays,
    sentence: int,
    corners: Flags,
    near: int,
    far: int,
    target: int,
    step: int,
) -> int:
    """Return how a phrase stands beside another one; see `_by_words` and `_mark_corners`.

    As in Moses, the phrase behind is found by its last target word, too, where its first one would
    be right, and the last source word is left out of the search to the right.
    """
    row = target + step
    monotone = _is_linked(arrays, sentence, near + step, row)
    swapped = _is_linked(arrays, sentence, far - step, row)
    words = arrays.source_offsets[sentence + 1] - arrays.source_offsets[sentence]
    ahead = corners[1 if step < 0 else 0, max(row, 0)]
    back = corners[0 if step < 0 else 1, max(row, 0)]
    if (monotone and not swapped) or (row >= 0 and 0 <= near + step < words and ahead[near + step]):
        return MONOTONE
    if (swapped and not monotone) or (row >= 0 and 0 <= far - step < words and back[far - step]):
        return SWAP
    place = near + 2 * step
    while row >= 0 and place >= 0 and (step < 0 or place < words - 1):
        if ahead[place]:
            return DISCONTINUOUS_RIGHT
        place += step
    place = far - 2 * step
    while row >= 0 and place >= 0 and (step > 0 or place < words - 1):
        if back[place]:
            return DISCONTINUOUS_LEFT
        place -= step
    return DISCONTINUOUS_RIGHT


@helper
def _by_words(arrays: _Arrays, sentence: int, near: int, far: int, target: int, step: int) -> int:
    """Return how a phrase stands beside the one before it (step -1) or behind it (step 1).

    Args:
        arrays: of the texts.
        sentence: the sentence.
        near: the source word of the phrase that a monotone neighbour touches.
        far: the word at its other end.
        target: its target word at this side.
        step: the direction.
    """
    row = target + step
    monotone = _is_linked(arrays, sentence, near + step, row)
    swapped = _is_linked(arrays, sentence, far - step, row)
    if monotone and not swapped:
        return MONOTONE
    if swapped and not monotone:
        return SWAP
    words = arrays.source_offsets[sentence + 1] - arrays.source_offsets[sentence]
    place = near + 2 * step
    while 0 <= place < words and not monotone:
        monotone = _is_linked(arrays, sentence, place, row)
        place += step
    place = far - 2 * step
    while 0 <= place < words and not swapped:
        swapped = _is_linked(arrays, sentence, place, row)
        place -= step
    if swapped and not monotone:
        return DISCONTINUOUS_LEFT
    return DISCONTINUOUS_RIGHT  # Moses counts what is unclear here, too


@helper
def _is_linked(arrays: _Arrays, sentence: int, source: int, target: int) -> bool:
    """Return whether two words are linked; the ends of both sentences are."""
    words = arrays.source_offsets[sentence + 1] - arrays.source_offsets[sentence]
    target_words = arrays.target_offsets[sentence + 1] - arrays.target_offsets[sentence]
    if (source == -1 and target == -1) or (source == words and target == target_words):
        return True
    if not (0 <= source < words and 0 <= target < target_words):
        return False
    link = _first_link(arrays, sentence, target)
    while link < arrays.link_offsets[sentence + 1] and arrays.links[link, 1] == target:
        if arrays.links[link, 0] == source:
            return True
        link += 1
    return False
