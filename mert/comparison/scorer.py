"""BLEU of the first translations of n-best lists, as sacreBLEU counts it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from mert.bleu import References
from mert.corpus import Corpus
from mert.features import FeatureSet
from mert.nbest import read_nbest


class BleuScorer:
    """sacreBLEU on tokenised text against the references of a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._metric = BLEU(tokenize="none", smooth_method="none", force=True)
        self._size = len(corpus)
        self._references = [References(references) for references in corpus.references]
        self._streams = [
            [_text(references[n]) for references in corpus.references]
            for n in range(len(corpus.references[0]))
        ]

    def score(self, nbest: Path, features: FeatureSet) -> tuple[float, np.ndarray]:
        """Return BLEU, 0 to 100, and the statistics (sentences, 9) of the first translations."""
        words = [
            list_[0].words if list_ else () for list_ in read_nbest(nbest, features, self._size)
        ]
        bleu = self._metric.corpus_score([_text(w) for w in words], self._streams).score
        statistics = [r.statistics([w]) for r, w in zip(self._references, words, strict=True)]
        return float(bleu), np.concatenate(statistics)

    def signature(self) -> str:
        """Return sacreBLEU's description of the score."""
        return str(self._metric.get_signature())


def _text(words: Sequence[bytes]) -> str:
    return b" ".join(words).decode(errors="surrogateescape")
