"""Hypotheses to tune on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mert.optimisers.candidates import Candidates
from moses_feature.metrics.chrf import CHRF
from moses_feature.metrics.error_rates import WER


def random_candidates(sentences: int = 23, features: int = 5, seed: int = 1) -> Candidates:
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 14, sentences)
    total = int(sizes.sum())
    length = generator.integers(5, 12, total)
    statistics = np.zeros((total, 9), dtype=np.int64)
    for n in range(4):
        statistics[:, 2 * n + 1] = length - n
        statistics[:, 2 * n] = generator.integers(0, length - n + 1)
    statistics[:, 8] = np.repeat(generator.integers(5, 12, sentences), sizes)
    return Candidates(
        generator.normal(size=(total, features)),
        statistics,
        np.concatenate([[0], np.cumsum(sizes)]),
        tuple(f"F{n}_0" for n in range(features)),
    )


def of_errors(candidates: Candidates, seed: int = 1) -> Candidates:
    """Return the same hypotheses with statistics of an error rate, some above 100%."""
    generator = np.random.default_rng(seed)
    length = np.repeat(generator.integers(3, 9, len(candidates.offsets) - 1), _sizes(candidates))
    errors = generator.integers(0, 3 * length)
    return replace(candidates, statistics=np.column_stack([errors, length]), metric=WER)


def of_chrf(candidates: Candidates, seed: int = 1) -> Candidates:
    """Return the same hypotheses with statistics of chrF."""
    generator = np.random.default_rng(seed)
    rows = len(candidates.features)
    length = np.repeat(generator.integers(9, 30, len(candidates.offsets) - 1), _sizes(candidates))
    written = generator.integers(7, 40, rows)
    columns = []
    for n in range(6):
        most = np.minimum(written, length) - n
        columns += [generator.integers(0, most + 1), written - n]
    columns += [length - n for n in range(6)][::-1]
    return replace(candidates, statistics=np.column_stack(columns), metric=CHRF)


def _sizes(candidates: Candidates) -> np.ndarray:
    return np.diff(candidates.offsets)


def planted(weights: np.ndarray) -> Candidates:
    """Return candidates of which the weights choose the one that equals the reference."""
    candidates = random_candidates(sentences=61, features=len(weights), seed=3)
    statistics = candidates.statistics.copy()
    for row in candidates.chosen(candidates.features @ weights):
        statistics[row, 0:8:2] = statistics[row, 1:8:2]
        statistics[row, 8] = statistics[row, 1]
    return replace(candidates, statistics=statistics)
