"""Features that the decoder does not have, added to its n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from xopen import xopen

from mert.decoders.decoder import Decoder, SearchErrors
from mert.features import FeatureFunction, FeatureSet
from mert.nbest import Hypothesis, format_nbest, read_nbest
from moses_feature.errors import UsageError
from moses_feature.files import whole_file
from moses_feature.rescoring.nbest import SentenceScorer

START_WEIGHT = 0.1
FEWEST = 100
"""Translations of a sentence that are ordered anew at least, whatever number is wanted."""


class RescoredDecoder:
    """A decoder whose n-best lists have more features, and their order; see `Decoder`.

    Args:
        decoder: what translates.
        scorers: of the new features.
        sentences: how many the decoder translates.
    """

    def __init__(self, decoder: Decoder, scorers: Sequence[SentenceScorer], sentences: int) -> None:
        names = {function.name for function in decoder.features.functions}
        for scorer in scorers:
            if scorer.name in names:
                raise UsageError(
                    f"the system has a feature {scorer.name} already: give another "
                    "name to what rescores"
                )
        self._decoder = decoder
        self._scorers = scorers
        self._sentences = sentences
        new = [FeatureFunction(s.name, (START_WEIGHT,), (True,)) for s in scorers]
        self.features = FeatureSet((*decoder.features.functions, *new))

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate the whole text, score and order the lists; see `Decoder`."""
        known = FeatureSet(features.functions[: len(self._decoder.features.functions)])
        weights = np.array([f.weights[0] for f in features.functions[len(known.functions) :]])
        plain = path.with_name(f".{path.name}.plain.gz")
        try:
            self._decoder.write_nbest(known, max(count, FEWEST), plain, report)
            with (
                whole_file(path) as temporary,
                xopen(temporary, "wb", format="gz", compresslevel=1, threads=0) as file,
            ):
                lists = read_nbest(plain, known, self._sentences)
                for sentence, hypotheses in enumerate(lists):
                    rescored = self._rescored(sentence, hypotheses, weights)
                    file.write(format_nbest(sentence, rescored[:count], features))
        finally:
            plain.unlink(missing_ok=True)

    def search_errors(self, features: FeatureSet, count: int) -> SearchErrors | None:
        """Count those of the decoder; see `Decoder`."""
        known = FeatureSet(features.functions[: len(self._decoder.features.functions)])
        return self._decoder.search_errors(known, count)

    def _rescored(
        self, sentence: int, hypotheses: Sequence[Hypothesis], weights: np.ndarray
    ) -> list[Hypothesis]:
        """Return hypotheses with more features, best first."""
        if not hypotheses:
            return []
        words = [hypothesis.words for hypothesis in hypotheses]
        new = np.array([scorer.scores(sentence, words) for scorer in self._scorers]).T
        rescored = [
            Hypothesis(
                old.words,
                np.concatenate([old.features, values]),
                old.score + float(values @ weights),
            )
            for old, values in zip(hypotheses, new, strict=True)
        ]
        return sorted(rescored, key=lambda hypothesis: -hypothesis.score)

    def close(self) -> None:
        """Free what the decoder holds."""
        self._decoder.close()
