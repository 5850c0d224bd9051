"""k-best batch MIRA (Cherry and Foster, NAACL 2012, algorithm 1).

An online learner goes through the sentences and moves the weights so that the hope hypothesis
(high score, high BLEU) beats the fear hypothesis (high score, low BLEU) by the difference of
their BLEU, or other metric. The average of all weights of an epoch is a candidate; the best one on
the n-best lists wins. Settings are those of Moses' `kbmira`. As there, the start weights are no
candidate: they are often the best on the few translations found so far, and would never be left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mert.optimisers.candidates import Candidates, Optimum, SearchSpace
from moses_feature.metrics.metric import Formula
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled

EPOCHS = 60
LARGEST_STEP = 0.01
"""C, the largest step of one update along a difference of features."""
DECAY = 0.999
"""The decay of the background statistics at each sentence, before its hope is added."""


def mira(candidates: Candidates, space: SearchSpace, seed: int = 1) -> Optimum:
    """Learn weights from the start weights on."""
    generator = np.random.default_rng(seed)
    sentences = len(candidates.offsets) - 1
    statistics = candidates.statistics.astype(np.float64)
    start = space.start.astype(np.float64)
    learner = Learner(
        weights=start.copy(),
        background=np.array(candidates.metric.background),
        total=np.zeros(len(start)),
        updates=np.zeros(1),
    )
    formula, features = candidates.metric.formula, candidates.features
    start_quality = candidates.quality(start)
    best, best_quality, best_epoch = start, -np.inf, 0
    of_epochs = [start_quality]
    for epoch in range(1, EPOCHS + 1):
        order = generator.permutation(sentences)
        _epoch(formula, features, statistics, candidates.offsets, order, learner)
        average = learner.total / learner.updates[0]
        of_epochs.append(candidates.quality(average))
        if of_epochs[-1] > best_quality:
            best, best_quality, best_epoch = average, of_epochs[-1], epoch
    reason = f"{EPOCHS} passes of mira, the best is number {best_epoch}"
    return Optimum(best, best_quality, start_quality, reason, of_epochs)


class Learner(NamedTuple):
    """The variables of an epoch.

    Attributes:
        weights: (d,) current weights.
        background: (width,) decayed statistics of the sentences before.
        total: (d,) the sum of the weights after each sentence.
        updates: (1,) the number of summands.
    """

    weights: Floats
    background: Floats
    total: Floats
    updates: Floats


@compiled
def _epoch(
    formula: Formula,
    features: Floats,
    statistics: Floats,
    offsets: Integers,
    order: Integers,
    learner: Learner,
) -> None:
    """Go once through the sentences, in the given order."""
    weights, background = learner.weights, learner.background
    with_background = np.empty_like(background)
    for sentence in order:
        first, last = offsets[sentence], offsets[sentence + 1]
        hope = fear = first
        hope_score = fear_score = -np.inf
        hope_quality = fear_quality = 0.0
        for row in range(first, last):
            score = 0.0
            for column in range(len(weights)):
                score += weights[column] * features[row, column]
            for column in range(len(background)):
                with_background[column] = statistics[row, column] + background[column]
            quality = formula(with_background) * with_background[-1]  # in reference words
            if score + quality > hope_score:
                hope, hope_score, hope_quality = row, score + quality, quality
            if score - quality > fear_score:
                fear, fear_score, fear_quality = row, score - quality, quality
        difference = features[hope] - features[fear]
        loss = hope_quality - fear_quality - np.sum(weights * difference)
        norm = np.sum(difference * difference)
        learner.updates[0] += 1.0
        if hope == fear:
            learner.total[:] += weights
            continue
        if hope_quality > fear_quality and loss > 0.0 and norm > 0.0:
            weights += min(LARGEST_STEP, loss / norm) * difference
        background *= DECAY
        background += statistics[hope]
        learner.total[:] += weights
