"""Pairwise ranked optimisation (Hopkins and May, EMNLP 2011).

From each sentence's hypotheses, pairs that differ in BLEU (or another metric) are sampled; a
logistic regression learns to tell the better one from the difference of their features. The
weights are interpolated with the start weights, both normalised. Constants are those of the paper,
except the share of the learnt weights.
"""

from __future__ import annotations

import numpy as np

from mert.optimisers.candidates import Candidates, Optimum, SearchSpace, normalised
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import UsageError

SAMPLES = 5000
"""Pairs sampled for a sentence (Γ)."""
KEPT = 50
"""Pairs of a sentence used for learning, those with the greatest difference (Ξ)."""
SMALLEST_DIFFERENCE = 0.05
"""The least difference in a sentence's metric for a pair to be kept (α)."""
NEW_SHARE = 0.3
"""The share of the learnt weights in the interpolation (Ψ); 0.1 in the paper (30 iterations)."""
PENALTY = 1e-3
"""The factor of the squared weights, for a pair; without it the weights could grow for ever."""
MOST_STEPS = 50


def pro(candidates: Candidates, space: SearchSpace, seed: int = 1) -> Optimum:
    """Learn weights and interpolate them with the start weights.

    Raises:
        UsageError: weights are fixed or bounded, which the regression does not support.
    """
    if space.fixed.any() or np.isfinite(space.lowest).any() or np.isfinite(space.highest).any():
        raise UsageError("pro has no fixed or bounded weights: use mert or mira")
    start = normalised(space.start)
    start_quality = candidates.quality(start)
    differences = _differences(candidates, np.random.default_rng(seed))
    if not len(differences):
        return Optimum(start, start_quality, start_quality, "no pair of hypotheses differs", [])
    learnt, reason = _regression(differences)
    weights = normalised(NEW_SHARE * normalised(learnt) + (1 - NEW_SHARE) * start)
    quality = candidates.quality(weights)
    said = f"{len(differences):,} pairs, {reason}"
    return Optimum(weights, quality, start_quality, said, [quality])


def _differences(candidates: Candidates, generator: np.random.Generator) -> Floats:
    """Return (pairs, d): features of the better hypothesis minus those of the worse one."""
    quality = candidates.metric.of_sentences(candidates.statistics)
    kept = []
    for first, last in zip(candidates.offsets[:-1], candidates.offsets[1:], strict=True):
        one, other = generator.integers(first, last, size=(2, SAMPLES))
        gain = quality[one] - quality[other]
        chosen = np.flatnonzero(np.abs(gain) > SMALLEST_DIFFERENCE)
        chosen = chosen[np.argsort(-np.abs(gain[chosen]), kind="stable")[:KEPT]]
        sign = np.sign(gain[chosen])[:, None]
        kept.append(sign * (candidates.features[one[chosen]] - candidates.features[other[chosen]]))
    return np.concatenate(kept)


def _regression(differences: Floats) -> tuple[Floats, str]:
    """Return weights w that make w·d positive, and the reason for stopping.

    Newton's method on the logistic loss of d, which is that of the pairs (d, better) and
    (-d, worse); there is no bias, since it would cancel out.
    """
    count, size = differences.shape
    scale = differences.std(axis=0)
    scale[scale == 0] = 1.0
    scaled = differences / scale
    weights = np.zeros(size)
    loss = _loss(scaled, weights)
    for step in range(MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(np.clip(scaled @ weights, -500, 500)))  # of being wrong
        gradient = -scaled.T @ p / count + 2 * PENALTY * weights
        curvature = (scaled.T * (p * (1 - p))) @ scaled / count + 2 * PENALTY * np.eye(size)
        direction = np.linalg.solve(curvature, gradient)
        length = 1.0
        while length > 1e-6 and _loss(scaled, weights - length * direction) > loss:
            length /= 2
        weights = weights - length * direction
        before, loss = loss, _loss(scaled, weights)
        if before - loss < 1e-9:
            return weights / scale, f"{step + 1} steps of the regression"
    return weights / scale, f"{MOST_STEPS} steps of the regression, the most"


def _loss(differences: Floats, weights: Floats) -> float:
    return float(
        np.logaddexp(0.0, -(differences @ weights)).mean() + PENALTY * float(weights @ weights)
    )
