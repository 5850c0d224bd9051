"""A metric of the first translations of n-best lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from mert.corpus import Corpus
from mert.nbest import first_translations
from moses_feature.metrics import metric
from moses_feature.metrics.metric import Metric, corpus_quality


class Scorer:
    """A metric against the references of a corpus, on the tokens as Moses splits them.

    sacreBLEU computes BLEU from statistics that are counted here: it would split tokens again at
    spaces that only Unicode knows, such as U+00A0, and the p-values count tokens as they are.
    """

    def __init__(self, corpus: Corpus, of: Metric) -> None:
        self._metric = of
        self._size = len(corpus)
        self._number_of_references = len(corpus.references[0])
        self._references = [of.references(references) for references in corpus.references]

    def score(self, nbest: Path) -> tuple[float, np.ndarray]:
        """Return the metric as it is shown, and the statistics (sentences, width)."""
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
        """Say what is computed, BLEU as sacreBLEU does."""
        if self._metric.width != metric.BLEU:
            references = f"nrefs:{self._number_of_references}"
            return f"{references}|{self._metric.describe}|version:{sacrebleu.__version__}"
        bleu = BLEU(tokenize="none", smooth_method="none", force=True)
        bleu.corpus_score([""], [[""]] * self._number_of_references)
        return str(bleu.get_signature())
