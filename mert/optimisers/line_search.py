"""Exact line search for corpus BLEU (Och 2003).

Along a line w + γ d every hypothesis has a score that is linear in γ; the best hypotheses of a
sentence form the upper envelope of these lines. Where an envelope changes, the summed statistics
change; between two such places BLEU is constant, so that the best γ is found without a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mert.bleu import bleu_of
from mert.optimisers.candidates import Candidates
from moses_feature.arrays import Floats, Integers
from moses_feature.compiled import compiler

OUTSIDE = 0.1
"""How far beyond the last change γ goes when the best interval has no end (weights sum to 1)."""
TIE = 1e-12
"""BLEU values closer than this are equal."""

_exact = compiler(nogil=True)
_fast = compiler(nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "reassoc"})


@dataclass(frozen=True)
class Step:
    """The best place on a line: γ, and BLEU (0 to 1) there."""

    gamma: float
    bleu: float


class Changes(NamedTuple):
    """Where along a line the best hypotheses of all sentences change.

    Attributes:
        gammas: (changes,) ascending.
        statistics: (changes, 9) by how much the summed statistics change there.
        start: (9,) their sum at the smallest γ.
    """

    gammas: Floats
    statistics: Floats
    start: Floats


class LineSearch:
    """Searches lines through the weights of one set of candidates."""

    def __init__(self, candidates: Candidates) -> None:
        self._statistics = candidates.statistics.astype(np.float64)
        self._offsets = candidates.offsets
        self._columns = np.ascontiguousarray(candidates.features.T)
        sentence = np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets))
        self._ascending = [np.lexsort((column, sentence)) for column in self._columns]
        self._sorted = [c[order] for c, order in zip(self._columns, self._ascending, strict=True)]

    def slopes(self, direction: Floats) -> Floats:
        """Return (n,): how much the score of each hypothesis grows with γ."""
        feature = _single(direction)
        slopes: Floats = direction @ self._columns if feature is None else self._columns[feature]
        return slopes

    def along(
        self, scores: Floats, direction: Floats, slopes: Floats, lowest: float, highest: float
    ) -> Step:
        """Search the line in a direction.

        Args:
            scores: (n,) scores of the hypotheses at γ = 0.
            direction: (d,).
            slopes: (n,) of this direction.
            lowest: smallest γ.
            highest: largest γ.
        """
        feature = _single(direction)
        if feature is None:
            changes = _changes(scores, slopes, self._statistics, self._offsets, lowest, highest)
        else:
            order = self._ascending[feature]
            changes = _changes_of_sorted(
                scores[order],
                self._sorted[feature],
                order,
                self._statistics,
                self._offsets,
                lowest,
                highest,
            )
        return Step(*_best_interval(changes, lowest, highest))


def _single(direction: Floats) -> int | None:
    """Return the only feature that a direction goes along, by 1; None if there are more."""
    moving = np.flatnonzero(direction)
    return int(moving[0]) if len(moving) == 1 and direction[moving[0]] == 1.0 else None


@_fast
def _changes(
    scores: Floats,
    slopes: Floats,
    statistics: Floats,
    offsets: Integers,
    lowest: float,
    highest: float,
) -> Changes:
    """Follow the envelope of each sentence from `lowest` to `highest`; see `Changes`.

    From the hypothesis that is best at `lowest`, the envelope goes on to the one whose line is
    crossed first, of several the steepest. Looking at all lines for each step of the envelope
    costs less than sorting them first, since the loops have no branches and envelopes are short.
    """
    gammas = np.empty(len(scores))
    before = np.empty(len(scores), np.int64)
    after = np.empty(len(scores), np.int64)
    crossings = np.empty(len(scores))
    found = 0
    start = np.zeros(statistics.shape[1])
    for sentence in range(len(offsets) - 1):
        first, last = offsets[sentence], offsets[sentence + 1]
        current = _best_at(scores, slopes, first, last, lowest)
        start += statistics[current]
        while True:
            # Where each steeper line crosses the current one …
            slope, score = slopes[current], scores[current]
            for line in range(first, last):
                crossing = (score - scores[line]) / (slopes[line] - slope)
                crossings[line] = crossing if slopes[line] > slope else np.inf
            gamma = np.inf
            for line in range(first, last):
                gamma = crossings[line] if crossings[line] < gamma else gamma
            if gamma >= highest:
                break
            # … and the steepest of those that do so first: it is the best one from there on.
            following = current
            for line in range(first, last):
                if crossings[line] <= gamma and slopes[line] > slopes[following]:
                    following = line
            gammas[found] = gamma
            before[found] = current
            after[found] = following
            found += 1
            current = following
    return _in_order(gammas[:found], before[:found], after[:found], statistics, start)


@_fast
def _changes_of_sorted(
    scores: Floats,
    slopes: Floats,
    ascending: Integers,
    statistics: Floats,
    offsets: Integers,
    lowest: float,
    highest: float,
) -> Changes:
    """Follow the envelopes of lines that are in ascending order by slope, sentence by sentence.

    `ascending` gives their rows among the statistics.

    Only the steeper lines behind the current one need be looked at.
    """
    gammas = np.empty(len(scores))
    before = np.empty(len(scores), np.int64)
    after = np.empty(len(scores), np.int64)
    crossings = np.empty(len(scores))
    found = 0
    start = np.zeros(statistics.shape[1])
    for sentence in range(len(offsets) - 1):
        first, last = offsets[sentence], offsets[sentence + 1]
        current = _best_at(scores, slopes, first, last, lowest)
        start += statistics[ascending[current]]
        while True:
            slope, score = slopes[current], scores[current]
            gamma = np.inf
            for line in range(current + 1, last):
                crossing = (score - scores[line]) / (slopes[line] - slope)
                crossing = crossing if slopes[line] > slope else np.inf
                crossings[line] = crossing
                gamma = crossing if crossing < gamma else gamma
            if gamma >= highest:
                break
            following = last - 1
            while not crossings[following] <= gamma:
                following -= 1
            # Of lines that are the same, the first one counts, as wherever hypotheses are chosen.
            while (
                following - 1 > current
                and crossings[following - 1] <= gamma
                and slopes[following - 1] == slopes[following]
            ):
                following -= 1
            gammas[found] = gamma
            before[found] = ascending[current]
            after[found] = ascending[following]
            found += 1
            current = following
    return _in_order(gammas[:found], before[:found], after[:found], statistics, start)


@_fast
def _in_order(
    gammas: Floats, before: Integers, after: Integers, statistics: Floats, start: Floats
) -> Changes:
    """Return the changes from the hypotheses `before` to those `after`, in ascending order of γ."""
    order = np.argsort(gammas)
    changes = statistics[after[order]] - statistics[before[order]]
    return Changes(gammas[order], changes, start)


@_exact
def _best_at(scores: Floats, slopes: Floats, first: int, last: int, gamma: float) -> int:
    """Return the line that is highest at γ and just behind it; γ may be minus infinity."""
    best = first
    for line in range(first + 1, last):
        if gamma == -np.inf:
            higher = slopes[best] - slopes[line]
            steeper = scores[line] - scores[best]
        else:
            higher = scores[line] - scores[best] + gamma * (slopes[line] - slopes[best])
            steeper = slopes[line] - slopes[best]
        if higher > 0.0 or (higher == 0.0 and steeper > 0.0):
            best = line
    return best


@_exact
def _best_interval(changes: Changes, lowest: float, highest: float) -> tuple[float, float]:
    """Return the middle of the best interval and BLEU on it.

    Of equally good intervals the widest is taken, and of equally wide ones the leftmost; one
    without an end counts, and is entered, as if it were 0.2 wide.
    """
    gammas, current = changes.gammas, changes.start.copy()
    best_bleu = -1.0
    best_gamma = 0.0
    best_width = -1.0
    found = len(gammas)
    for interval in range(found + 1):
        if interval > 0:
            for column in range(len(current)):
                current[column] += changes.statistics[interval - 1, column]
        left = gammas[interval - 1] if interval > 0 else lowest
        right = gammas[interval] if interval < found else highest
        if left == -np.inf and right == np.inf:
            left, right = -OUTSIDE, OUTSIDE
        elif left == -np.inf:
            left = right - 2 * OUTSIDE
        elif right == np.inf:
            right = left + 2 * OUTSIDE
        width = right - left
        if width <= 0.0:
            continue
        bleu = bleu_of(current)
        if bleu > best_bleu + TIE or (bleu > best_bleu - TIE and width > best_width):
            best_bleu = bleu
            best_gamma = (left + right) / 2.0
            best_width = width
    return best_gamma, best_bleu
