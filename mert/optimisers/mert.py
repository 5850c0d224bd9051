"""Minimum error rate training (Och 2003): weights with the best corpus BLEU on n-best lists."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mert.optimisers.candidates import Candidates
from mert.optimisers.line_search import LineSearch
from mert.optimisers.space import Optimum, SearchSpace, normalised
from moses_feature.arrays import Floats

SMALLEST_GAIN = 1e-5
"""BLEU that a step must bring for the search to go on."""


def mert(
    candidates: Candidates,
    space: SearchSpace,
    restarts: int = 20,
    random_directions: int = 8,
    seed: int = 1,
) -> Optimum:
    """Search from the start weights and from random ones, and return the best weights found.

    Each search goes along one feature after the other that is not fixed, and takes the best step
    of every line that raises BLEU; when all features in a row bring nothing, random directions
    are tried, and when these bring nothing either, it ends. Of equally good restarts the first is
    taken.
    """
    generator = np.random.default_rng(seed)
    candidates = candidates.distinct()
    search = _Search(candidates, space, generator)
    start = search.scaled(space.start)
    place = search.climb(start, random_directions)
    of_restarts = [place.bleu]
    for _ in range(restarts):
        drawn = generator.uniform(space.draw_lowest, space.draw_highest)
        drawn = np.where(space.fixed, space.start, drawn)
        other = search.climb(search.scaled(drawn), random_directions)
        of_restarts.append(other.bleu)
        if other.bleu > place.bleu:
            place = other
    reason = f"{restarts} restarts done, the best is number {int(np.argmax(of_restarts))}"
    return Optimum(place.weights, place.bleu, candidates.bleu(start), reason, of_restarts)


@dataclass(frozen=True)
class _Place:
    """Weights (d,), the scores (n,) that they give the hypotheses, and BLEU."""

    weights: Floats
    scores: Floats
    bleu: float


class _Search:
    """Climbs from a point until nothing more is gained."""

    def __init__(
        self,
        candidates: Candidates,
        space: SearchSpace,
        generator: np.random.Generator,
    ) -> None:
        self._candidates = candidates
        self._lines = LineSearch(candidates)
        self._space = space
        self._generator = generator
        self._free = np.flatnonzero(~space.fixed)
        bounded = np.isfinite(space.lowest) | np.isfinite(space.highest)
        self._scale_free = not (space.fixed.any() or bounded.any())

    def scaled(self, weights: Floats) -> Floats:
        """Return the weights, normalised where that changes nothing that is fixed or bounded."""
        if self._scale_free:
            return normalised(weights)
        return np.clip(weights, self._space.lowest, self._space.highest)

    def climb(self, weights: Floats, random_directions: int = 0) -> _Place:
        """Return the place where neither a feature nor random directions bring anything more."""
        place = self._at(weights)
        improving = True
        while improving:
            place = self._along_features(place)
            before = place.bleu
            for _ in range(random_directions):
                direction = np.zeros(len(weights))
                direction[self._free] = self._generator.normal(size=len(self._free))
                place = self._step(place, normalised(direction))
            improving = place.bleu > before + SMALLEST_GAIN
        return self._at(place.weights)

    def _along_features(self, place: _Place) -> _Place:
        """Search along one feature after the other until all of them in a row bring nothing."""
        without_gain = 0
        for feature in itertools.cycle(self._free):
            direction = np.zeros(len(place.weights))
            direction[feature] = 1.0
            before = place.bleu
            place = self._step(place, direction)
            without_gain = 0 if place.bleu > before + SMALLEST_GAIN else without_gain + 1
            if without_gain >= len(self._free):
                break
        return place

    def _at(self, weights: Floats) -> _Place:
        scores = self._candidates.features @ weights
        return _Place(weights, scores, self._candidates.bleu_of(scores))

    def _step(self, place: _Place, direction: Floats) -> _Place:
        lowest, highest = self._range(place.weights, direction)
        slopes = self._lines.slopes(direction)
        step = self._lines.along(place.scores, direction, slopes, lowest, highest)
        if step.bleu <= place.bleu:
            return place
        weights = place.weights + step.gamma * direction
        scores = place.scores + step.gamma * slopes
        scaled = self.scaled(weights)
        if self._scale_free:
            scores *= np.abs(scaled).sum() / np.abs(weights).sum()
        # A tie of two hypotheses may be broken otherwise than on the line: count what is there.
        bleu = self._candidates.bleu_of(scores)
        return _Place(scaled, scores, bleu) if bleu > place.bleu else place

    def _range(self, weights: Floats, direction: Floats) -> tuple[float, float]:
        """Return the γ between which no weight leaves its bounds."""
        moving = direction != 0
        with np.errstate(invalid="ignore"):
            to_lowest = (self._space.lowest - weights)[moving] / direction[moving]
            to_highest = (self._space.highest - weights)[moving] / direction[moving]
        ends = np.sort(np.stack([to_lowest, to_highest]), axis=0)
        return float(ends[0].max()), float(ends[1].min())
