"""Exact line search for a metric whose statistics add up (Och 2003).

Along a line w + γ d the score of every hypothesis is linear in γ; the best hypotheses of a sentence
form the upper envelope of these lines. The summed statistics change only where the best hypothesis
of a sentence changes; the metric is constant in between, so the best γ is found without a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mert.optimisers.candidates import Candidates
from moses_feature.metrics.metric import Formula
from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.compiled import compiled, helper

OUTSIDE = 0.1
"""How far γ goes beyond the last change if the best interval has no end (weights sum to 1)."""
TIE = 1e-12
"""Qualities closer than this are equal."""


@dataclass(frozen=True)
class LineStep:
    """The best step along a line: γ, and the quality (0 to 1) there."""

    gamma: float
    quality: float


class Line(NamedTuple):
    """A direction in the space of the weights.

    Attributes:
        slopes: (n,) how fast the score of each hypothesis grows with γ.
        flattest, steepest: (sentences,) rows of the hypotheses of least and greatest slope.
    """

    slopes: Floats
    flattest: Integers
    steepest: Integers


class Changes(NamedTuple):
    """Where along a line the best hypotheses of all sentences change.

    Attributes:
        gammas: (changes,) γ of each change, sentence by sentence.
        before, after: (changes,) rows of the best hypotheses on either side.
        start: (sentences,) rows of the best hypotheses at the smallest γ.
    """

    gammas: Floats
    before: Integers
    after: Integers
    start: Integers


class LineSearch:
    """Searches lines through the weights for one set of candidates.

    Its arrays are only read, so several threads may search at once.
    """

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._statistics = candidates.statistics.astype(np.int32)
        self._offsets = candidates.offsets
        self._columns = np.ascontiguousarray(candidates.features.T)
        self._along_features = [
            Line(column, *_outermost(column, self._offsets)) for column in self._columns
        ]

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def part(self, number: int, parts: int) -> LineSearch:
        """Return the search for every `parts`-th sentence, from sentence `number` on."""
        return LineSearch(self._candidates.part(number, parts))

    def chosen(self, scores: Floats) -> Integers:
        """Return the best hypothesis of each sentence by scores (n,), the first of equal ones."""
        return self._candidates.chosen(scores)

    def quality_of_rows(self, rows: Integers) -> float:
        """Return the quality, 0 to 1, of one hypothesis (sentences,) of each sentence."""
        return self._candidates.quality_of_rows(rows)

    def scores(self, weights: Floats) -> Floats:
        """Return (n,): the scores of the hypotheses under weights (d,)."""
        of_weights: Floats = weighted(self._columns, weights)
        return of_weights

    def line(self, direction: Floats) -> Line:
        """Return the line in a direction (d,)."""
        moving = np.flatnonzero(direction)
        if len(moving) == 1 and direction[moving[0]] == 1.0:
            along: Line = self._along_features[moving[0]]
            return along
        slopes = self.scores(direction)
        return Line(slopes, *_outermost(slopes, self._offsets))

    def along(
        self,
        scores: Floats,
        chosen: Integers,
        line: Line,
        lowest: float = -np.inf,
        highest: float = np.inf,
    ) -> LineStep:
        """Search a line.

        Args:
            scores: (n,) scores of the hypotheses at γ = 0.
            chosen: (sentences,) rows of the best hypotheses at γ = 0.
            line: the line to search.
            lowest: smallest γ.
            highest: largest γ.
        """
        changes = _changes(scores, chosen, line, self._offsets, lowest, highest)
        order, formula = np.argsort(changes.gammas), self._candidates.metric.formula
        return LineStep(*_best_interval(changes, order, formula, self._statistics, lowest, highest))


@compiled
def weighted(columns: Floats | Floats32, weights: Floats) -> Floats:
    """Return (n,) the weighted sum of columns (d, n), always added in the same order."""
    total = np.zeros(columns.shape[1])
    for column in range(len(weights)):
        if weights[column] != 0.0:
            weight, values = weights[column], columns[column]
            for row in range(len(total)):
                total[row] += weight * values[row]
    return total


@compiled
def _changes(
    scores: Floats,
    chosen: Integers,
    line: Line,
    offsets: Integers,
    lowest: float,
    highest: float,
) -> Changes:
    """Follow the envelope of each sentence from `lowest` to `highest`; see `Changes`.

    As points (slope, score), the lines of the envelope are the upper convex hull (Macherey et al.
    2008). Most points are below the two chords from the highest point to the outermost ones; they
    are removed before the others are sorted (Akl and Toussaint 1978).
    """
    gammas = np.empty(len(scores))
    before, after = np.empty(len(scores), np.int64), np.empty(len(scores), np.int64)
    start = np.empty(len(offsets) - 1, np.int64)
    lines, crossings = np.empty(len(scores), np.int64), np.empty(len(scores))
    found = 0
    for sentence in range(len(start)):
        first, last = offsets[sentence], offsets[sentence + 1]
        heights, slants = scores[first:last], line.slopes[first:last]
        corners = line.flattest[sentence] - first, line.steepest[sentence] - first
        kept = _above_chords(heights, slants, chosen[sentence] - first, *corners, lines)
        _sort_by_slope(lines[:kept], slants)
        kept = _envelope(lines[:kept], heights, slants, crossings)
        place = 1
        while place < kept and crossings[place] <= lowest:
            place += 1
        start[sentence] = first + lines[place - 1]
        while place < kept and crossings[place] < highest:
            gammas[found] = crossings[place]
            before[found] = first + lines[place - 1]
            after[found] = first + lines[place]
            found += 1
            place += 1
    return Changes(gammas[:found], before[:found], after[:found], start)


@compiled
def _outermost(slopes: Floats, offsets: Integers) -> tuple[Integers, Integers]:
    """Return the rows of the flattest and of the steepest line of each sentence."""
    flattest = offsets[:-1].copy()
    steepest = offsets[:-1].copy()
    for sentence in range(len(offsets) - 1):
        low = high = offsets[sentence]
        for row in range(low + 1, offsets[sentence + 1]):
            if slopes[row] < slopes[low]:
                low = row
            if slopes[row] > slopes[high]:
                high = row
        flattest[sentence], steepest[sentence] = low, high
    return flattest, steepest


@helper
def _above_chords(
    heights: Floats,
    slants: Floats,
    highest: int,
    flattest: int,
    steepest: int,
    lines: Integers,
) -> int:
    """Write the lines that may be in the envelope, in order; return their number."""
    # 1. Keep the points above the two chords; find the farthest one on either side.
    top, middle = heights[highest], slants[highest]
    to_left, to_right = middle - slants[flattest], slants[steepest] - middle
    rise_left, rise_right = top - heights[flattest], heights[steepest] - top
    kept = 0
    left = right = highest
    most_left = most_right = 0.0
    for line in range(len(heights)):
        aside = slants[line] - middle
        width = to_left if aside < 0.0 else to_right
        rise = rise_left if aside < 0.0 else rise_right
        above = (heights[line] - top) * width - aside * rise
        lines[kept] = line
        kept += above >= 0.0
        if above > min(most_left, most_right):
            if aside < 0.0 and above > most_left:
                left, most_left = line, above
            elif aside >= 0.0 and above > most_right:
                right, most_right = line, above
    # 2. On each side, the farthest point makes two new chords; keep the points above them.
    once, kept = kept, 0
    for place in range(once):
        line = lines[place]
        lines[kept] = line
        slant = slants[line]
        if slant < slants[highest]:
            first, last = (flattest, left) if slant < slants[left] else (left, highest)
        else:
            first, last = (highest, right) if slant < slants[right] else (right, steepest)
        kept += _above(heights, slants, line, first, last) >= 0.0
    return kept


@helper
def _above(heights: Floats, slants: Floats, line: int, first: int, last: int) -> float:
    """Return how far a point is above the chord of two others, in a unit that varies by chord."""
    width, rise = slants[last] - slants[first], heights[last] - heights[first]
    above: float = (heights[line] - heights[last]) * width - (slants[line] - slants[last]) * rise
    return above


@helper
def _sort_by_slope(lines: Integers, slants: Floats) -> None:
    """Sort lines by slope, stably."""
    for place in range(1, len(lines)):
        line = lines[place]
        slant = slants[line]
        hole = place
        while hole > 0 and slants[lines[hole - 1]] > slant:
            lines[hole] = lines[hole - 1]
            hole -= 1
        lines[hole] = line


@helper
def _envelope(lines: Integers, heights: Floats, slants: Floats, crossings: Floats) -> int:
    """Keep the lines of the envelope, sorted by slope; return their number.

    `crossings` gets where each line crosses the one before. Of lines that cross in one point the
    steepest wins; of equal lines the first, as wherever hypotheses are chosen.
    """
    kept = 0
    for line in lines:
        height, slant = heights[line], slants[line]
        crossing = -np.inf
        while kept > 0:
            last = lines[kept - 1]
            if slants[last] < slant:
                crossing = (heights[last] - height) / (slant - slants[last])
                if crossing > crossings[kept - 1]:
                    break
            elif height <= heights[last]:
                break  # parallel, and not above
            kept -= 1
        if kept == 0 or slants[lines[kept - 1]] < slant:
            lines[kept] = line
            crossings[kept] = crossing if kept > 0 else -np.inf
            kept += 1
    return kept


@compiled
def _best_interval(
    changes: Changes,
    order: Integers,
    formula: Formula,
    statistics: NDArray[np.int32],
    lowest: float,
    highest: float,
) -> tuple[float, float]:
    """Return the middle of the best interval, and the quality in it.

    Of equally good intervals the widest wins, then the leftmost. An interval without an end counts
    as 0.2 wide, and its middle is chosen accordingly.

    Args:
        changes: the changes along the line.
        order: (changes,) the changes sorted by γ.
        formula: of the metric; see `Metric`.
        statistics: (n, width) of the hypotheses.
        lowest: smallest γ.
        highest: largest γ.
    """
    current = np.zeros(statistics.shape[1])
    for row in changes.start:
        for column in range(len(current)):
            current[column] += statistics[row, column]
    best_quality = -np.inf
    best_gamma = 0.0
    best_width = -1.0
    found = len(order)
    right = lowest
    for interval in range(found + 1):
        left = right
        if interval > 0:
            change = order[interval - 1]
            before, after = changes.before[change], changes.after[change]
            for column in range(len(current)):
                current[column] += statistics[after, column] - statistics[before, column]
        right = changes.gammas[order[interval]] if interval < found else highest
        begin, end = _ends(left, right)
        width = end - begin
        if width <= 0.0:
            continue
        quality = formula(current)
        if quality > best_quality + TIE or (quality > best_quality - TIE and width > best_width):
            best_quality = quality
            best_gamma = (begin + end) / 2.0
            best_width = width
    return best_gamma, best_quality


@helper
def _ends(left: float, right: float) -> tuple[float, float]:
    """Return the ends of an interval; a missing end is replaced by a near one."""
    if left == -np.inf and right == np.inf:
        return -OUTSIDE, OUTSIDE
    if left == -np.inf:
        return right - 2 * OUTSIDE, right
    return left, left + 2 * OUTSIDE if right == np.inf else right
