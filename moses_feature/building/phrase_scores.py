"""The distinct phrase pairs of an extraction with their counts, links and lexical weights.

Follows `phrase-extract/score-main.cpp` of Moses: of several links of a pair the most frequent
count, of equally frequent ones the greatest, where those of each word are compared, the first word
first.
The direct weight compares the links of the target words, the inverse one those of the source words,
so that the two may be of different links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.building.bitext import Ids
from moses_feature.building.extraction import Extraction, Occurrences
from moses_feature.building.lexical import LexicalTable
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled, constant, helper
from moses_feature.runtime.hash_table import mixed

ORIENTATIONS = 4
NULL = constant(-1)
"""The place of NULL, which words without links are linked to."""


class ExtractedPairs(NamedTuple):
    """Distinct phrase pairs, in the order of a table.

    Attributes:
        source, target: (n,) numbers of the phrases.
        counts: (n,) how often each occurs.
        best: (n,) an occurrence with the links that stand in the table.
        inverse, direct: (n,) lexical weights, p(source | target) and p(target | source).
        before, behind: (n, orientations) counts of each orientation.
        occurrences: all of them.
    """

    source: Ids
    target: Ids
    counts: Ids
    best: Integers
    inverse: Floats
    direct: Floats
    before: NDArray[np.int32]
    behind: NDArray[np.int32]
    occurrences: Occurrences


class _OccurrenceLinks(NamedTuple):
    """Where the links of occurrences are, and the probabilities of words."""

    links: NDArray[np.int16]
    source_ids: NDArray[np.int32]
    target_ids: NDArray[np.int32]
    source_text: NDArray[np.int32]
    target_text: NDArray[np.int32]
    source_length: NDArray[np.int8]
    target_length: NDArray[np.int8]
    key: Integers
    source_begin: Integers
    target_words: int
    target_given_source: Floats
    source_given_target: Floats


def phrase_pairs(
    extraction: Extraction, lexical: LexicalTable, found: Occurrences
) -> ExtractedPairs:
    """Group occurrences by phrase pair."""
    bitext, count = extraction.bitext, len(found.source)
    of_links = _OccurrenceLinks(
        bitext.links,
        bitext.source.ids,
        bitext.target.ids,
        extraction.source.place,
        extraction.target.place,
        extraction.source.length,
        extraction.target.length,
        lexical.key,
        np.searchsorted(lexical.key, np.arange(lexical.source_words + 1) * lexical.target_words),
        lexical.target_words,
        lexical.target_given_source,
        lexical.source_given_target,
    )
    key = found.source.astype(np.int64) * len(extraction.target) + found.target
    hashes = np.empty(count, dtype=np.int64)
    _hash_links(of_links, found, hashes)
    order = np.lexsort((hashes, key))
    sorted_key = key[order]
    first = np.flatnonzero(np.diff(sorted_key, prepend=-1))
    pairs = len(first)
    best = np.empty((2, pairs), dtype=np.int64)
    _best_links(of_links, found, hashes, order, np.append(first, count), best)
    weights = np.empty((2, pairs))
    _lexical_weights(of_links, found, best, weights)
    of_pair = np.repeat(np.arange(pairs), np.diff(np.append(first, count)))
    before, behind = (
        np.bincount(
            of_pair * ORIENTATIONS + orientation[order], minlength=pairs * ORIENTATIONS
        ).reshape(pairs, ORIENTATIONS)
        for orientation in (found.before, found.behind)
    )
    return ExtractedPairs(
        found.source[order[first]],
        found.target[order[first]],
        np.diff(np.append(first, count)).astype(np.int32),
        best[0],
        weights[1],
        weights[0],
        before.astype(np.int32),
        behind.astype(np.int32),
        found,
    )


@compiled
def _hash_links(of: _OccurrenceLinks, found: Occurrences, hashes: Integers) -> None:
    for place in range(len(hashes)):
        value = 0
        for link in range(found.first_link[place], found.last_link[place]):
            source = of.links[link, 0] - found.source_place[place]
            target = of.links[link, 1] - found.target_place[place]
            value = mixed(value, (target << 16) + source + 1)
        hashes[place] = value


@compiled
def _best_links(
    of: _OccurrenceLinks,
    found: Occurrences,
    hashes: Integers,
    order: Integers,
    bounds: Integers,
    best: Integers,
) -> None:
    """Write an occurrence with the best links of each pair: [0] direct, [1] inverse."""
    for pair in range(len(bounds) - 1):
        place, end = bounds[pair], bounds[pair + 1]
        most = 0
        while place < end:
            same = place + 1
            while same < end and hashes[order[same]] == hashes[order[place]]:
                same += 1
            count = same - place
            if count > most:
                most = count
                best[0, pair] = best[1, pair] = order[place]
            elif count == most:
                for side in range(2):
                    if _is_greater(of, found, order[place], best[side, pair], 1 - side):
                        best[side, pair] = order[place]
            place = same


@helper
def _is_greater(of: _OccurrenceLinks, found: Occurrences, one: int, other: int, side: int) -> bool:
    """Return whether the links of one occurrence are greater, word by word of a side.

    The links of a word are the ascending places of the other side's words; fewer are less, if all
    are the same up to there.
    """
    length = (
        of.target_length[found.target[one]] if side == 1 else of.source_length[found.source[one]]
    )
    for word in range(length):
        last = -1
        while True:
            mine = _next_link(of, found, one, side, word, last)
            theirs = _next_link(of, found, other, side, word, last)
            if mine != theirs:
                return bool(mine > theirs)
            if mine < 0:
                break
            last = mine
    return False


@helper
def _next_link(
    of: _OccurrenceLinks, found: Occurrences, place: int, side: int, word: int, last: int
) -> int:
    """Return the next word that a word of an occurrence is linked to, -1 if there is none."""
    following = 1 << 20
    for link in range(found.first_link[place], found.last_link[place]):
        source = of.links[link, 0] - found.source_place[place]
        target = of.links[link, 1] - found.target_place[place]
        own, other = (target, source) if side == 1 else (source, target)
        if own == word and last < other < following:
            following = other
    return following if following < 1 << 20 else -1


@compiled
def _lexical_weights(
    of: _OccurrenceLinks, found: Occurrences, best: Integers, weights: Floats
) -> None:
    """Write [0] p(target | source) and [1] p(source | target) of the words of each pair."""
    for pair in range(best.shape[1]):
        for side in range(2):
            weights[side, pair] = _lexical_weight(of, found, best[side, pair], 1 - side)


@helper
def _lexical_weight(of: _OccurrenceLinks, found: Occurrences, place: int, side: int) -> float:
    """Return the product over the words of a side of their mean probability by their links."""
    length = (
        of.target_length[found.target[place]]
        if side == 1
        else of.source_length[found.source[place]]
    )
    weight = 1.0
    for word in range(length):
        total, links = 0.0, 0
        other = _next_link(of, found, place, side, word, NULL)
        while other >= 0:
            total += _probability(of, found, place, side, word, other)
            links += 1
            other = _next_link(of, found, place, side, word, other)
        if links == 0:
            total, links = _probability(of, found, place, side, word, NULL), 1
        weight *= total / links
    return weight


@helper
def _probability(
    of: _OccurrenceLinks, found: Occurrences, place: int, side: int, word: int, other: int
) -> float:
    """Return p(a word of a side | another word of the other side, or `NULL`)."""
    source_place, target_place = (other, word) if side == 1 else (word, other)
    source, target = len(of.source_begin) - 2, of.target_words - 1
    if source_place >= 0:
        source = of.source_ids[of.source_text[found.source[place]] + source_place]
    if target_place >= 0:
        target = of.target_ids[of.target_text[found.target[place]] + target_place]
    at = _pair_at(of, source, target)
    return float(of.target_given_source[at] if side == 1 else of.source_given_target[at])


@helper
def _pair_at(of: _OccurrenceLinks, source: int, target: int) -> int:
    """Return where two words stand among the pairs with a probability."""
    low, high = of.source_begin[source], of.source_begin[source + 1]
    wanted = source * of.target_words + target
    while low + 1 < high:
        middle = (low + high) // 2
        if of.key[middle] <= wanted:
            low = middle
        else:
            high = middle
    return int(low)
