"""Significance of the difference in BLEU, or another metric, over several tuning runs each.

Both tests use statistics (runs, sentences, width) of two systems, which may have different numbers
of runs; the difference is that of the mean quality over the runs. Tuning is random, so one run of
each system says little (Clark et al., ACL 2011).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from mert.tuning.corpus import Corpus
from moses_feature.metrics import metric
from moses_feature.metrics.metric import Metric, corpus_quality, quality_of
from moses_feature.moses.nbest_lists import first_translations
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled


class CorpusScorer:
    """A metric against the references of a corpus, on the tokens as Moses splits them.

    sacreBLEU computes BLEU from statistics that are counted here: it would split tokens again at
    Unicode spaces such as U+00A0, while the p-values count tokens as they are.
    """

    def __init__(self, corpus: Corpus, of: Metric) -> None:
        self._metric = of
        self._size = len(corpus)
        self._number_of_references = len(corpus.references[0])
        self._references = [of.references(references) for references in corpus.references]

    def score(self, nbest: Path) -> tuple[float, np.ndarray]:
        """Return the metric as shown to users, and the statistics (sentences, width)."""
        words = first_translations(nbest, self._size)
        rows = [r.statistics([w]) for r, w in zip(self._references, words, strict=True)]
        statistics = np.concatenate(rows)
        if self._metric.width != metric.BLEU:
            return self._metric.shown(corpus_quality(statistics.sum(axis=0))), statistics
        matches_and_totals, reference = np.split(statistics.sum(axis=0), [-1])
        bleu = BLEU.compute_bleu(
            correct=matches_and_totals[0::2].tolist(),
            total=matches_and_totals[1::2].tolist(),
            sys_len=int(matches_and_totals[1]),
            ref_len=int(reference[0]),
            smooth_method="none",
        )
        return float(bleu.score), statistics

    def signature(self) -> str:
        """Return the signature of the metric; for BLEU that of sacreBLEU."""
        if self._metric.width != metric.BLEU:
            references = f"nrefs:{self._number_of_references}"
            return f"{references}|{self._metric.describe}|version:{sacrebleu.__version__}"
        bleu = BLEU(tokenize="none", smooth_method="none", force=True)
        bleu.corpus_score([""], [[""]] * self._number_of_references)
        return str(bleu.get_signature())


TRIALS = 10_000
RESAMPLES = 1_000


def mean_quality(statistics: Integers) -> float:
    """Return the mean quality over the runs, 0 to 1."""
    return float(np.mean([corpus_quality(run.sum(axis=0)) for run in statistics]))


def approximate_randomisation(system: Integers, baseline: Integers, seed: int = 1) -> float:
    """Return the p-value of the difference (Clark et al. 2011; Riezler and Maxwell 2005).

    If the systems were equal, their translations could be exchanged: each trial redistributes the
    translations of a sentence at random among all runs of both systems.
    """
    both = np.concatenate([system, baseline]).transpose(1, 0, 2).astype(np.float64)
    observed = abs(mean_quality(system) - mean_quality(baseline))
    differences = _shuffled_differences(np.ascontiguousarray(both), len(system), TRIALS, seed)
    at_least = int(np.count_nonzero(np.abs(differences) >= observed - 1e-12))
    return (at_least + 1) / (TRIALS + 1)


def paired_bootstrap(system: Integers, baseline: Integers, seed: int = 1) -> float:
    """Return the p-value of the difference (Koehn 2004), two-sided.

    The distances of the resampled differences from their mean are compared with the observed one.
    sacreBLEU 2.6 compares in a way that is in effect one-sided, so its p-value may be smaller.
    """
    differences = bootstrap_differences(system, baseline, seed)
    return p_of_differences(differences, mean_quality(system) - mean_quality(baseline))


def bootstrap_differences(system: Integers, baseline: Integers, seed: int = 1) -> Floats:
    """Return the differences (RESAMPLES,) of the mean quality on resampled texts.

    Sentences are drawn with replacement, the same ones for all runs.
    """
    generator = np.random.default_rng(seed)
    sentences = system.shape[1]
    draws = generator.multinomial(sentences, np.full(sentences, 1 / sentences), size=RESAMPLES)
    means = [
        np.mean([[corpus_quality(row) for row in draws @ run] for run in runs], axis=0)
        for runs in (system, baseline)
    ]
    differences: Floats = means[0] - means[1]
    return differences


def p_of_differences(differences: Floats, observed: float) -> float:
    """Return the two-sided p-value of a difference, after shifting the distribution to mean 0."""
    moved = np.abs(differences - differences.mean())
    return (int(np.count_nonzero(moved >= abs(observed) - 1e-12)) + 1) / (len(differences) + 1)


@compiled
def _shuffled_differences(both: Floats, runs: int, trials: int, seed: int) -> Floats:
    """Return the difference of the mean quality in each trial.

    `both` has the statistics (sentences, runs of both systems, width), those of the first `runs`
    runs being the first system's.
    """
    np.random.seed(seed)  # noqa: NPY002  # compiled code has its own generator
    sentences, slots, width = both.shape
    differences = np.empty(trials)
    order = np.arange(slots)
    for trial in range(trials):
        totals = np.zeros((slots, width))
        for sentence in range(sentences):
            for slot in range(slots - 1, 0, -1):  # Fisher and Yates
                other = np.random.randint(0, slot + 1)  # noqa: NPY002
                order[slot], order[other] = order[other], order[slot]
            for slot in range(slots):
                for column in range(width):
                    totals[slot, column] += both[sentence, order[slot], column]
        difference = 0.0
        for slot in range(slots):
            quality = quality_of(totals[slot])
            difference += quality / runs if slot < runs else -quality / (slots - runs)
        differences[trial] = difference
    return differences
