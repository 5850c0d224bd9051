"""The encoder-decoder as a feature of whole translations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from moses_feature.networks.known_words import KnownPairs
from moses_feature.phrases.cross_fitting import load_any_model
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.table_words import TableWords
from moses_feature.rescoring.nbest import TRANSLATIONS, AnyTranslation
from moses_feature.rescoring.source import SourceText


class RnnScorer:
    """log p(translation | source sentence), each taken as one long phrase.

    Args:
        name: the name of the feature.
        directory: the model directory.
        source: the source text.
        device: the device to compute on.
    """

    def __init__(self, name: str, directory: str, source: SourceText, device: torch.device) -> None:
        model = load_any_model(Path(directory))
        self.name = name
        self._scorer = scorer_of(model, device)
        self._words = TableWords().words(model)
        self._source = source
        vocabularies = model.reading.texts(model.source, model.target)
        self._known = KnownPairs(directory, (source.name, TRANSLATIONS), vocabularies)

    def scores(self, sentence: int, translations: Sequence[AnyTranslation]) -> list[float]:
        """Return log p of each translation."""
        source = self._source.translated(sentence, translations)
        pairs = [self._words.pair(source, b" ".join(of.words)) for of in translations]
        for pair in pairs[:1]:
            self._known.add(*pair)
        found: list[float] = self._scorer.score(pairs).log_probs.tolist()
        return found

    def finish(self) -> None:
        """Check that lists, source and network belong together."""
        self._source.finish()
        self._known.check()
