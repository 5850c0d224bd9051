"""Minimum error rate training (Och 2003): weights with the best metric on n-best lists."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from mert.optimisers.candidates import Candidates, Optimum, SearchSpace, normalised
from mert.optimisers.line_search import LineSearch
from mert.settings import TuningSettings
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.processes import cores

SMALLEST_GAIN = 1e-5
"""The least gain in quality of a step for the search to continue."""
MOVING = 3
"""The number of features that a random direction changes."""
PARTS, SENTENCES_OF_A_PART, FINALISTS = 2, 100, 4
"""How random restarts are pruned: with `SENTENCES_OF_A_PART` sentences for each of `PARTS` parts, a
restart first climbs on one part, and only `FINALISTS` restarts continue on all sentences."""
ROUNDS, NEIGHBOURS, NEAR = 3, 4, 0.03
"""At the end, in each of `ROUNDS`, so many climbs begin beside the best weights, each of which is
moved by about this share of itself and of the mean weight."""


def mert(
    candidates: Candidates,
    space: SearchSpace,
    restarts: int = TuningSettings.restarts,
    random_directions: int = TuningSettings.random_directions,
    seed: int = 1,
) -> Optimum:
    """Search from the start weights and from random ones, and return the best weights found.

    Each search goes through the features, one after the other, and takes the best step of every
    line that improves the metric. When no feature brings a gain, random
    directions are tried; when they do not either, the search ends. With many sentences, each random
    restart first climbs on a part of them, and only the best of the resulting weights are continued
    on all, without random directions. At the end, searches begin close to the best weights
    (iterated local search; Lourenço, Martin and Stützle 2003). Of equally good results the first
    wins. The searches run in threads; the result does not depend on their number.
    """
    lines = LineSearch(candidates.distinct())
    search = _Search(lines)
    generators = [np.random.default_rng([seed, restart]) for restart in range(restarts + 1)]
    drawn = [of.uniform(space.draw_lowest, space.draw_highest) for of in generators[1:]]
    starts = [normalised(weights) for weights in (space.start, *drawn)]
    parts = [search]
    count = min(PARTS, len(lines) // SENTENCES_OF_A_PART)
    if count > 1:
        parts = [_Search(lines.part(part, count)) for part in range(count)]
    ended = threading.Event()
    with ThreadPoolExecutor(cores()) as pool:

        def first_climb(restart: int) -> _Place:
            if restart == 0:
                return search.at(starts[0])
            part = parts[restart % len(parts)]
            return search.at(part.along_features(part.at(starts[restart]), ended).weights)

        def climb(restart: int) -> _Place:
            directions = random_directions if len(parts) == 1 else 0
            return search.climb(places[restart], directions, generators[restart], ended)

        try:
            places = list(pool.map(first_climb, range(len(starts))))
            ranked = sorted(range(1, len(places)), key=lambda restart: -places[restart].quality)
            going_on = [0, *sorted(ranked[: FINALISTS if len(parts) > 1 else restarts])]
            for restart, place in zip(going_on, pool.map(climb, going_on), strict=True):
                places[restart] = place
            of_restarts = [place.quality for place in places]
            number = int(np.argmax(of_restarts))
            best = search.climb(places[number], random_directions, generators[number], ended)
            neighbours = min(NEIGHBOURS, restarts)
            for round_ in range(ROUNDS):
                random = [
                    np.random.default_rng([seed, restarts, round_, n]) for n in range(neighbours)
                ]
                climb_on = partial(search.climb_beside, best, random_directions, ended)
                best = max([best, *pool.map(climb_on, random)], key=lambda place: place.quality)
        except BaseException:
            ended.set()
            raise
    reason = f"{restarts} restarts done, the best is number {number}"
    start_quality = search.at(starts[0]).quality
    return Optimum(best.weights, best.quality, start_quality, reason, of_restarts)


@dataclass(frozen=True)
class _Place:
    """Weights (d,), scores (n,) of the hypotheses, rows of the best ones, and their quality."""

    weights: Floats
    scores: Floats
    chosen: Integers
    quality: float


class _Search:
    """Climbs from points until there is no more gain; several threads may climb at once."""

    def __init__(self, lines: LineSearch) -> None:
        self._lines = lines

    def at(self, weights: Floats) -> _Place:
        """Return the place of weights."""
        return self._place(weights, self._lines.scores(weights))

    def climb(
        self,
        place: _Place,
        random_directions: int,
        generator: np.random.Generator,
        ended: threading.Event,
    ) -> _Place:
        """Return the place where neither features nor random directions bring any more gain.

        Args:
            place: where to begin.
            random_directions: the number to try when the features bring no more gain.
            generator: random numbers for the directions.
            ended: set to stop the search.
        """
        improving = True
        while improving and not ended.is_set():
            place = self.along_features(place, ended)
            before = place.quality
            for _ in range(random_directions):
                direction = np.zeros(len(place.weights))
                moving = generator.permutation(len(direction))[:MOVING]
                direction[moving] = generator.normal(size=len(moving))
                place = self._step(place, normalised(direction))
            improving = place.quality > before + SMALLEST_GAIN
        return self.at(place.weights)

    def climb_beside(
        self,
        place: _Place,
        random_directions: int,
        ended: threading.Event,
        generator: np.random.Generator,
    ) -> _Place:
        """Climb like `climb`, from a random place close to another one."""
        weights = place.weights
        size = np.abs(weights) + np.abs(weights).mean()
        moved = weights + NEAR * generator.normal(size=len(weights)) * size
        return self.climb(self.at(normalised(moved)), random_directions, generator, ended)

    def along_features(self, place: _Place, ended: threading.Event) -> _Place:
        """Search along one feature after the other until none of them brings a gain."""
        without_gain = 0
        size = len(place.weights)
        for feature in itertools.cycle(range(size)):
            direction = np.zeros(size)
            direction[feature] = 1.0
            before = place.quality
            place = self._step(place, direction)
            without_gain = 0 if place.quality > before + SMALLEST_GAIN else without_gain + 1
            if without_gain >= size or ended.is_set():
                break
        return place

    def _step(self, place: _Place, direction: Floats) -> _Place:
        line = self._lines.line(direction)
        step = self._lines.along(place.scores, place.chosen, line)
        if step.quality <= place.quality:
            return place
        weights = place.weights + step.gamma * direction
        scores = place.scores + step.gamma * line.slopes
        scaled = normalised(weights)
        scores *= np.abs(scaled).sum() / np.abs(weights).sum()
        # Ties may be broken differently than on the line, so compute the quality again.
        there = self._place(scaled, scores)
        return there if there.quality > place.quality else place

    def _place(self, weights: Floats, scores: Floats) -> _Place:
        chosen = self._lines.chosen(scores)
        return _Place(weights, scores, chosen, self._lines.quality_of_rows(chosen))
