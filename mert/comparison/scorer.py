"""BLEU of the first translations of n-best lists, as sacreBLEU counts it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from mert.corpus import Corpus
from mert.nbest import first_translations
from moses_feature.bleu import References


class BleuScorer:
    """BLEU against the references of a corpus, on the tokens as Moses splits them.

    sacreBLEU computes it from statistics that are counted here: it would split tokens again at
    spaces that only Unicode knows, such as U+00A0, and the p-values count tokens as they are.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._metric = BLEU(tokenize="none", smooth_method="none", force=True)
        self._size = len(corpus)
        self._number_of_references = len(corpus.references[0])
        self._references = [References(references) for references in corpus.references]

    def score(self, nbest: Path) -> tuple[float, np.ndarray]:
        """Return BLEU, 0 to 100, and the statistics (sentences, 9) of the first translations."""
        words = first_translations(nbest, self._size)
        rows = [r.statistics([w]) for r, w in zip(self._references, words, strict=True)]
        statistics = np.concatenate(rows)
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
        """Return sacreBLEU's description of the score."""
        self._metric.corpus_score([""], [[""]] * self._number_of_references)
        return str(self._metric.get_signature())
