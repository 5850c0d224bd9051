"""The encoder-decoder as a feature of whole translations, and features of all architectures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from moses_feature.joint.settings import JOINT_ARCHITECTURE
from moses_feature.networks.architectures import ENCODER_DECODER, FEED_FORWARD
from moses_feature.networks.known_words import KnownPairs
from moses_feature.phrases.cross_fitting import load_any_model
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.table_words import TableWords
from moses_feature.rescoring.features import JointFeature, Makers
from moses_feature.rescoring.nbest import TRANSLATIONS, Lists
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
        vocabularies = model.direction.texts(model.source, model.target)
        self._known = KnownPairs(directory, (source.name, TRANSLATIONS), vocabularies)

    def scores(self, lists: Lists) -> list[float]:
        """Return log p of each translation."""
        given, firsts = self._source.pairs(lists)
        pairs = [self._words.sentences(source, b" ".join(of.words)) for source, of in given]
        for _, first in firsts:
            self._known.add(*pairs[first])
        found: list[float] = self._scorer.score(pairs).log_probs.tolist()
        return found

    def finish(self) -> None:
        """Check that lists, source and network belong together."""
        self._source.finish()
        self._known.check()


def makers_for(source: SourceText, device: Callable[[], torch.device]) -> Makers:
    """Return functions that make the features that the tuner does not use.

    Args:
        source: the source text.
        device: returns the device of networks for phrases, if there is one.
    """

    def of_phrases(name: str, path: str) -> RnnScorer:
        return RnnScorer(name, path, source, device())

    return {
        JOINT_ARCHITECTURE: lambda name, path: JointFeature(name, path, source),
        ENCODER_DECODER: of_phrases,
        FEED_FORWARD: of_phrases,
    }
