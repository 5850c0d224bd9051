"""k-best batch MIRA (Cherry and Foster, NAACL 2012, algorithm 1).

An online learner goes through the sentences and moves the weights so that the hope hypothesis
(high score, high BLEU) beats the fear hypothesis (high score, low BLEU) by the difference of
their BLEU. The average of all weights of an epoch is a candidate; the best on the n-best lists
wins. Settings are those of Moses' `kbmira`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mert.optimisers.candidates import Candidates
from mert.optimisers.mert import Optimum, SearchSpace

EPOCHS = 60
LARGEST_STEP = 0.01
"""C, the most that one update moves along a difference of features."""
DECAY = 0.999
"""What a sentence leaves of the background statistics that came before it."""


def mira(candidates: Candidates, space: SearchSpace, seed: int = 1) -> Optimum:
    """Learn weights from the start weights on; fixed weights stay, bounds are held."""
    generator = np.random.default_rng(seed)
    sentences = len(candidates.offsets) - 1
    statistics = candidates.statistics.astype(np.float64)
    free = (~space.fixed).astype(np.float64)
    weights = space.start.astype(np.float64).copy()
    background = np.full(statistics.shape[1], 1e-8)
    start_bleu = candidates.bleu(weights)
    best, best_bleu, best_epoch = weights.copy(), start_bleu, 0
    of_epochs = [start_bleu]
    total = np.zeros_like(weights)
    updates = np.zeros(1)
    for epoch in range(1, EPOCHS + 1):
        order = generator.permutation(sentences)
        _epoch(
            candidates.features, statistics, candidates.offsets, order, weights, background,
            total, updates, free, space.lowest, space.highest,
        )  # fmt: skip
        average = np.where(space.fixed, space.start, total / updates[0])
        of_epochs.append(candidates.bleu(average))
        if of_epochs[-1] > best_bleu:
            best, best_bleu, best_epoch = average, of_epochs[-1], epoch
    reason = f"{EPOCHS} epochs done, the best is number {best_epoch}"
    return Optimum(best, best_bleu, start_bleu, reason, of_epochs)


@njit(cache=True)
def _epoch(  # type: ignore[no-untyped-def]  # pragma: no cover
    features, statistics, offsets, order, weights, background, total, updates, free, lowest, highest
):
    """Go once through the sentences; changes weights, background, total and updates."""
    for sentence in order:
        first, last = offsets[sentence], offsets[sentence + 1]
        model = hope = fear = first
        model_score = hope_score = fear_score = -np.inf
        hope_bleu = fear_bleu = 0.0
        for row in range(first, last):
            score = 0.0
            for column in range(len(weights)):
                score += weights[column] * features[row, column]
            bleu = _bleu_with(statistics[row], background)
            if score > model_score:
                model, model_score = row, score
            if score + bleu > hope_score:
                hope, hope_score, hope_bleu = row, score + bleu, bleu
            if score - bleu > fear_score:
                fear, fear_score, fear_bleu = row, score - bleu, bleu
        difference = (features[hope] - features[fear]) * free
        loss = hope_bleu - fear_bleu - np.sum(weights * (features[hope] - features[fear]))
        norm = np.sum(difference * difference)
        if hope_bleu > fear_bleu and loss > 0.0 and norm > 0.0:
            weights += min(LARGEST_STEP, loss / norm) * difference
            for column in range(len(weights)):
                weights[column] = min(max(weights[column], lowest[column]), highest[column])
        background *= DECAY
        background += statistics[model]
        total += weights
        updates[0] += 1.0


@njit(cache=True)
def _bleu_with(statistics, background):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return BLEU of a sentence on top of the background, times the reference length of both."""
    product = 1.0
    for column in range(0, len(background) - 1, 2):
        product *= (statistics[column] + background[column]) / (
            statistics[column + 1] + background[column + 1]
        )
    length = statistics[1] + background[1]
    reference = statistics[-1] + background[-1]
    return product**0.25 * np.exp(min(0.0, 1.0 - reference / length)) * reference
