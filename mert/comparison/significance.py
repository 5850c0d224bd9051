"""Significance of the difference in BLEU, or another metric, over several tuning runs each.

Systems are compared by their statistics (runs, sentences, width); they may have different numbers
of runs. Tuning is random, so one run of each system says little (Clark et al., ACL 2011).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import sacrebleu

from mert.tuning.corpus import Corpus
from moses_feature.metrics.bleu import BLEU
from moses_feature.metrics.metric import Metric
from moses_feature.moses.nbest_lists import first_translations
from moses_feature.runtime.arrays import Floats, Integers


class CorpusScorer:
    """A metric against the references of a corpus.

    Translations and references are split at every Unicode space, as by sacreBLEU with
    `tokenize=none`. (The search splits them as Moses does, at blanks and tabs.)
    """

    def __init__(self, corpus: Corpus, metric: Metric) -> None:
        self._metric = metric
        self._size = len(corpus)
        self._number_of_references = len(corpus.references[0])
        self._references = [
            metric.references([_at_spaces(reference) for reference in references])
            for references in corpus.references
        ]

    def score(self, nbest: Path) -> tuple[float, np.ndarray]:
        """Return the metric as shown to users, and the statistics (sentences, width)."""
        words = map(_at_spaces, first_translations(nbest, self._size))
        rows = [r.statistics([w]) for r, w in zip(self._references, words, strict=True)]
        statistics = np.concatenate(rows)
        return self._metric.shown(self._metric.quality(statistics.sum(axis=0))), statistics

    def signature(self) -> str:
        """Return the signature of the metric, as sacreBLEU writes it."""
        references = f"nrefs:{self._number_of_references}"
        return f"{references}|{self._metric.describe}|version:{sacrebleu.__version__}"


def _at_spaces(words: Sequence[bytes]) -> list[bytes]:
    text = b" ".join(words).decode(errors="surrogateescape")
    return [word.encode(errors="surrogateescape") for word in text.split()]


RESAMPLES = 1_000
"""Texts of the bootstrap."""
NODES, WIDTH = 200, 40.0
"""Nodes of the integral of the t distribution, and standard deviations that it reaches."""


@dataclass(frozen=True)
class Difference:
    """The difference of two systems, and how surprising it is.

    Attributes:
        quality: of the system minus the baseline, means over their runs, -1 to 1.
        error: the standard error of that difference.
        of_sentences: the part of it that comes of the choice of sentences.
        degrees: of freedom of the t distribution; inf for the normal one.
        p: two-sided: how often a difference as large comes about where there is none.
        covers_tuning: whether the luck of tuning is known; else the choice of sentences alone.
    """

    quality: float
    error: float
    of_sentences: float
    degrees: float
    p: float
    covers_tuning: bool


def mean_quality(statistics: Integers, metric: Metric = BLEU) -> float:
    """Return the mean quality over the runs, 0 to 1."""
    return float(np.mean(metric.qualities(statistics.sum(axis=1))))


def compared(
    system: Integers, baseline: Integers, metric: Metric = BLEU, seed: int = 1
) -> Difference:
    """Compare two systems, by a p-value for both the choice of sentences and the luck of tuning.

    The variance of the difference has two parts. The part of the sentences is measured by a paired
    bootstrap (Koehn 2004), which draws the same sentences for all runs. The part of tuning is the
    variance between the runs of a system, pooled over both systems, times the sum of 1 / runs of
    each. Sampling noise in it, which the bootstrap counts already, is subtracted first; the rest is
    at least 0.

    The difference divided by its standard error is compared with a t distribution. Its degrees of
    freedom are (runs - 2) (variance / luck as it was measured, before the subtraction) ^ e. By
    Satterthwaite (1946) and Welch (1947) e is 2, which trusts small measured luck too much. Here e
    is 1 + noise / variance between runs, 2 at most (benchmarks/calibration.py has error rates).
    With one run of each system nothing is known of luck, and the p-value is that of the sentences.

    Args:
        system: statistics (runs, sentences, width).
        baseline: the same of the other system.
        metric: what they are statistics of.
        seed: of the bootstrap.
    """
    quality = mean_quality(system, metric) - mean_quality(baseline, metric)
    resampled = [_resampled(of, metric, seed) for of in (system, baseline)]
    of_sentences = float(np.var(resampled[0].mean(axis=0) - resampled[1].mean(axis=0), ddof=1))
    runs = len(system), len(baseline)
    known = sum(runs) - len(runs)
    between = noise = 0.0
    for statistics, qualities_of in zip((system, baseline), resampled, strict=True):
        found = metric.qualities(statistics.sum(axis=1))
        between += float(np.square(found - found.mean()).sum())
        apart = qualities_of - qualities_of.mean(axis=0)
        noise += float(np.var(apart, axis=1, ddof=1).sum())
    share = (1 / runs[0] + 1 / runs[1]) / max(known, 1)
    measured = share * between
    variance = of_sentences + share * max(between - noise, 0.0)
    degrees = math.inf
    if known and measured > 0:
        degrees = known * max(variance / measured, 1.0) ** (1 + min(noise / between, 1.0))
    error = math.sqrt(variance)
    p = t_test(quality / error, degrees) if error > 0 else float(quality == 0)
    return Difference(quality, error, math.sqrt(of_sentences), degrees, p, known > 0)


def _resampled(statistics: Integers, metric: Metric, seed: int) -> Floats:
    """Return the quality (runs, RESAMPLES) of each run on the resampled texts."""
    runs, sentences, width = statistics.shape
    side_by_side = statistics.transpose(1, 0, 2).reshape(sentences, -1).astype(np.float64)
    sums = _draws(sentences, seed) @ side_by_side
    return metric.qualities(sums.reshape(-1, width)).reshape(RESAMPLES, runs).T


@lru_cache(maxsize=1)
def _draws(sentences: int, seed: int) -> Floats:
    """Return how often each sentence is in each resampled text (RESAMPLES, sentences)."""
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(sentences, np.full(sentences, 1 / sentences), size=RESAMPLES)
    return draws.astype(np.float64)


def t_test(t: float, degrees: float) -> float:
    """Return the two-sided p-value of a value of the t distribution.

    With t = sqrt(degrees) tan a, its density is proportional to cos^(degrees - 1) a.
    """
    if math.isinf(degrees) or degrees > 1e6:
        return math.erfc(abs(t) / math.sqrt(2))
    angle = math.atan(abs(t) / math.sqrt(degrees))
    return _tail(angle, degrees) / _tail(0.0, degrees)


def _tail(angle: float, degrees: float) -> float:
    """Return the integral of cos^(degrees - 1) from an angle on, by Gauss and Legendre."""
    end = min(math.pi / 2, angle + WIDTH / math.sqrt(degrees))
    places, weights = np.polynomial.legendre.leggauss(NODES)
    half = (end - angle) / 2
    cosines = np.cos(angle + half * (places + 1))
    return float(half * (weights @ cosines ** (degrees - 1)))
