"""The encoder-decoder as a feature of whole translations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from moses_feature.errors import MosesFeatureError
from moses_feature.models.cross_fitting import load_any_model
from moses_feature.moses.lines import LineReader
from moses_feature.scoring.of_model import scorer_of
from moses_feature.tables.settings import TableWords


class RnnScorer:
    """log p(translation | source sentence), each of them taken as one long phrase.

    Args:
        name: of the feature.
        directory: of the model.
        source: the text that was translated.
        device: to compute on.
    """

    def __init__(self, name: str, directory: str, source: str, device: torch.device) -> None:
        model = load_any_model(Path(directory))
        self.name = name
        self._scorer = scorer_of(model, device)
        self._words = TableWords().words(model)
        self._source = source
        self._last = -1
        with LineReader(source) as reader:
            self._sentences = [line.rstrip(b"\r\n") for line in reader]

    def scores(self, sentence: int, translations: Sequence[Sequence[bytes]]) -> list[float]:
        """Return log p of each translation."""
        if not 0 <= sentence < len(self._sentences):
            raise MosesFeatureError(
                f"{self._source}: expected a sentence {sentence} (from 0), found "
                f"{len(self._sentences)} lines"
            )
        self._last = max(self._last, sentence)
        source = self._sentences[sentence]
        pairs = [self._words.pair(source, b" ".join(words)) for words in translations]
        found: list[float] = self._scorer.score(pairs).log_probs.tolist()
        return found

    def finish(self) -> None:
        """Check that no sentence of the source comes after the last list, but for empty ones."""
        rest = self._sentences[self._last + 1 :]
        if any(sentence.strip() for sentence in rest):
            raise MosesFeatureError(
                f"{self._source}: expected {self._last + 1} sentences as in the n-best lists, "
                f"found {len(self._sentences)}: is it the text that was translated?"
            )
