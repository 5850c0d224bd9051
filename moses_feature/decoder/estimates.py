"""Future costs: the best score that uncovered source words can still add, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_feature.decoder.options import WINDOW, Options
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled, helper


class Estimates(NamedTuple):
    """The best scores that uncovered words can still add.

    Attributes:
        future: (n + 1, WINDOW + 1) for the 0, 1, … words that begin at each word.
        rest: (n + 1,) for all words from each word to the end.
    """

    future: Floats
    rest: Floats


@compiled
def estimates_of(phrases: Integers, options: Options) -> Estimates:
    """Estimate the best score of uncovered words, over all segmentations.

    Args:
        phrases: (n, longest) source phrases, as in `Task`.
        options: the phrase options.
    """
    size, width = phrases.shape
    future, rest = np.empty((size + 1, WINDOW + 1)), np.empty(size + 1)
    future[:] = rest[:] = -np.inf
    future[:, 0] = rest[size] = 0.0
    for start in range(size - 1, -1, -1):
        for length in range(1, min(width, size - start) + 1):
            phrase = phrases[start, length - 1]
            if phrase < 0 or options.size[phrase] == 0:
                continue
            best = options.estimate[options.order[options.first[phrase]]]
            rest[start] = max(rest[start], best + rest[start + length])
            for count in range(length, min(WINDOW, size - start) + 1):
                joined = best + future[start + length, count - length]
                future[start, count] = max(future[start, count], joined)
    return Estimates(future, rest)


@helper
def uncovered_score(estimates: Estimates, gap: int, mask: int) -> float:
    """Return the estimate for all words that a coverage leaves uncovered.

    The words before `gap` are covered; bit i of `mask` says whether word gap + i is.
    """
    total = 0.0
    place = gap
    while mask != 0:
        begin = place
        while mask & 1 == 0:
            mask >>= 1
            place += 1
        total += estimates.future[begin, place - begin]
        while mask & 1 == 1:
            mask >>= 1
            place += 1
    return total + estimates.rest[place]


@helper
def words_to_skip(gap: int, mask: int, after: int, size: int) -> int:
    """Return the words that jumps skip if the uncovered words are translated in order.

    A hypothesis that has jumped ahead must pay for the way back (Moore and Quirk 2007).

    Args:
        gap: the first uncovered word.
        mask: bits of the covered words from there on.
        after: the word behind the last span.
        size: the number of words of the sentence.
    """
    skipped = abs(after - gap)
    place = gap
    while mask != 0:
        while mask & 1 == 0:
            mask >>= 1
            place += 1
        begin = place
        while mask & 1 == 1:
            mask >>= 1
            place += 1
        if place < size:  # no jump is needed at the end of the sentence
            skipped += place - begin
    return skipped
