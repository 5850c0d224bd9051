"""The metrics by name, and the quality that weights are tuned for: 0 to 1, higher is better.

The quality of some translations is computed from the sum of their statistics. The number of
statistics identifies the metric: nine for BLEU, two for error rates, eighteen for chrF.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moses_feature.metrics import bleu, chrf
from moses_feature.metrics import error_rates as edit_distance
from moses_feature.metrics import error_rates as ter
from moses_feature.metrics.bleu import bleu_of, sentence_bleu
from moses_feature.metrics.chrf import chrf_of
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled

Tokens = Sequence[bytes]
ERRORS = edit_distance.STATISTICS
BLEU = bleu.STATISTICS


class ReferenceStatistics(Protocol):
    """The reference translations of a sentence, against which hypotheses are counted."""

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return the statistics (n, width) of n hypotheses."""


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        name: its name for users.
        label: its name in outputs.
        width: the number of statistics of a hypothesis.
        references: makes an object that counts hypotheses against the references of a sentence.
        is_error: it is shown as errors, lower is better.
        describe: describes exactly what is shown, like sacreBLEU's signatures.
    """

    name: str
    label: str
    width: int
    references: Callable[[Sequence[Tokens]], ReferenceStatistics]
    is_error: bool
    describe: str

    def shown(self, quality: float) -> float:
        """Return the metric for a quality, usually 0 to 100."""
        return 100.0 * (1.0 - quality) if self.is_error else 100.0 * quality


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("bleu", "BLEU", BLEU, bleu.References, False, "case:mixed|tok:none|smooth:none"),
        Metric("wer", "WER", ERRORS, edit_distance.WordErrors, True, "case:mixed|tok:none"),
        Metric("ter", "TER", ERRORS, ter.TerReferences, True, "case:mixed|tok:none"),
        Metric(
            "chrf", "chrF", chrf.STATISTICS, chrf.ChrfReferences, False, "nc:6|nw:0|space:no|beta:2"
        ),
        Metric(
            "accuracy",
            "accuracy",
            ERRORS,
            edit_distance.SentenceErrors,
            False,
            "sentences that are a reference, case:mixed",
        ),
    )
}
"""All metrics by name."""


@compiled
def quality_of(statistics: Floats) -> float:
    """Return the quality of summed statistics (width,), in compiled code."""
    if len(statistics) == BLEU:
        return bleu_of(statistics)
    if len(statistics) == ERRORS:
        return float(1.0 - statistics[0] / max(statistics[1], 1.0))
    return chrf_of(statistics)


def qualities(statistics: NDArray[np.number]) -> Floats:
    """Return the quality (n,) of n texts from their summed statistics (n, width)."""
    return _qualities(np.ascontiguousarray(statistics, dtype=np.float64))


@compiled
def _qualities(statistics: Floats) -> Floats:
    found = np.empty(len(statistics))
    for row in range(len(statistics)):
        found[row] = quality_of(statistics[row])
    return found


def corpus_quality(statistics: NDArray[np.integer]) -> float:
    """Return the quality of summed statistics (width,)."""
    return float(quality_of(statistics.astype(np.float64)))


def sentence_quality(statistics: NDArray[np.integer]) -> Floats:
    """Return the quality of single sentences (n,) from their statistics (n, width).

    BLEU is smoothed (Lin and Och 2004).
    """
    if statistics.shape[1] == BLEU:
        return sentence_bleu(statistics)
    return qualities(statistics)
