"""Whether a column pays: BLEU with it and without it, on sentences that were kept for this.

Neither the system nor the refining has seen them. The network was trained on the table of the whole
text, so that it knows their phrase pairs.

The sentences are translated by the tuned system with the column at weight 0, and at the weight that
it was refined for. All other weights stay. On one half of the sentences an exact line search finds
the weight of the column that has the best BLEU on both lists together, and the other half is judged
with it; and the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from mert.comparison.significance import compared
from mert.decoders.choice import make_decoder
from mert.optimisers.candidates import Candidates
from mert.optimisers.line_search import LineSearch
from mert.settings import DecoderSettings, TuningSettings
from mert.tuning.corpus import Corpus
from mert.tuning.pool import HypothesisPool
from moses_feature.metrics.bleu import BLEU
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.nbest_lists import read_nbest
from moses_feature.runtime.arrays import Floats, Integers

GREATEST = 8.0
"""The greatest weight that is tried, as a multiple of the one that the column was refined for."""
CHANCE = 0.05
"""A difference with a smaller p-value is more than chance."""


@dataclass(frozen=True)
class Verdict:
    """What a column brings.

    Attributes:
        sentences: how many were judged.
        before, after: BLEU, 0 to 100, without the column and with it.
        p: of the difference: two-sided, of the choice of sentences.
    """

    sentences: int
    before: float
    after: float
    p: float

    @property
    def loses(self) -> bool:
        """Whether the column loses more than chance would."""
        return self.after < self.before and self.p <= CHANCE

    def __str__(self) -> str:
        """Return the verdict in words."""
        gain = self.after - self.before
        if self.p > CHANCE:
            meaning = "no more than chance: try it on your development set before you use it"
        elif gain > 0:
            meaning = "a gain beyond chance"
        else:
            meaning = "a loss beyond chance"
        return (
            f"the column on {self.sentences:,} sentences that were kept for this: BLEU "
            f"{self.before:.2f} without it, {self.after:.2f} with it ({gain:+.2f}, p "
            f"{self.p:.3f}): {meaning}"
        )


def judge(
    ini: MosesIni,
    corpus: Corpus,
    weight: float,
    directory: Path,
    report: Callable[[str, int], None],
) -> Verdict:
    """Judge the last column of a system's phrase table.

    Args:
        ini: the system, its other weights tuned.
        corpus: sentences that were kept for this.
        weight: the weight that the column was refined for.
        directory: where lists are kept.
        report: called with the task and the number of sentences translated.
    """
    table = ini.table()
    with closing(make_decoder(DecoderSettings(), ini, corpus.sentences)) as decoder:
        features = decoder.features
        column = features.names.index(f"{table.name}_{table.score_count - 1}")
        without = features.weights[features.tuneable]
        without[column] = 0.0
        pool = HypothesisPool(corpus.references, features.names)
        for name, of_column in (("without", 0.0), ("with", weight)):
            given = without.copy()
            given[column] = of_column
            path = directory / f"judged.{name}.gz"
            decoder.write_nbest(
                features.with_weights(given),
                TuningSettings.list_size,
                path,
                partial(report, f"decoding {name} the column"),
            )
            pool.add(read_nbest(path, features, len(corpus)))
    return verdict(pool.candidates(), without, column, weight)


def verdict(candidates: Candidates, without: Floats, column: int, weight: float) -> Verdict:
    """Return what a column brings to lists.

    Args:
        candidates: all translations.
        without: (d,) weights, 0 for the column.
        column: its index.
        weight: the weight that it was refined for.
    """
    direction = np.zeros(len(without))
    direction[column] = 1.0
    halves = [candidates.part(number, 2) for number in range(2)]
    before, after = [], []
    for tuned_on, judged in (halves, halves[::-1]):
        search = LineSearch(tuned_on)
        scores = search.scores(without)
        given = scores, search.chosen(scores), search.line(direction)
        step = search.along(*given, lowest=0.0, highest=GREATEST * weight)
        before.append(_statistics(judged, without))
        after.append(_statistics(judged, without + step.gamma * direction))
    both = np.concatenate(before), np.concatenate(after)
    difference = compared(both[1][None], both[0][None])
    bleu_before, bleu_after = (BLEU.shown(BLEU.quality(of.sum(axis=0))) for of in both)
    return Verdict(len(both[0]), bleu_before, bleu_after, difference.p)


def _statistics(candidates: Candidates, weights: Floats) -> Integers:
    """Return the statistics (sentences, 9) of the translations that weights choose."""
    chosen: Integers = candidates.statistics[candidates.chosen(candidates.features @ weights)]
    return chosen
