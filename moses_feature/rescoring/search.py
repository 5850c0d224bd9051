"""RNNsearch as a feature of whole translations; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from moses_feature.errors import UsageError
from moses_feature.models.known_words import KnownPairs
from moses_feature.models.table_words import TableWords
from moses_feature.rescoring.nbest import TRANSLATIONS, AnyTranslation
from moses_feature.rescoring.own_source import OwnSource
from moses_feature.rescoring.source import SourceText
from moses_feature.search.scorer import SearchScorer


class SearchFeature:
    """log p of a translation under RNNsearch, in the direction of the network.

    Of several networks, an ensemble, the probabilities of each word are averaged.

    Args:
        name: of the feature.
        directories: of the networks.
        source: the text that was translated.

    Raises:
        UsageError: the networks read or write in different directions.
    """

    def __init__(self, name: str, directories: Sequence[str], source: SourceText) -> None:
        self.name = name
        self._networks = [SearchScorer(Path(directory)) for directory in directories]
        self._words = [TableWords().words(network) for network in self._networks]
        self._source = source
        self._own = OwnSource(name, source.name)
        self._known = [
            KnownPairs(
                directory,
                (source.name, TRANSLATIONS),
                network.reading.texts(network.source, network.target),
            )
            for directory, network in zip(directories, self._networks, strict=True)
        ]
        first = self._networks[0].reading
        for directory, network in zip(directories, self._networks, strict=True):
            if network.reading != first:
                raise UsageError(
                    f"{name}: expected networks of one direction, as {directories[0]} "
                    f"({first}), found {directory} ({network.reading}): give them different names"
                )

    def scores(self, sentence: int, translations: Sequence[AnyTranslation]) -> list[float]:
        """Return log p of each translation, or of the source given it.

        Raises:
            BadTranslationError: the first one is aligned to words that the source has not.
            MosesFeatureError: a network knows too few words.
        """
        source = self._source.translated(sentence, translations)
        texts = [b" ".join(of.words) for of in translations]
        found = []
        for network, words, known in zip(self._networks, self._words, self._known, strict=True):
            pairs = [words.pair(source, text) for text in texts]
            for pair in pairs[:1]:
                known.add(*pair)
            found.append(network.word_log_probs([network.ids(*pair) for pair in pairs]))
        if texts and not self._own.is_done:
            self._compare(sentence, source, texts[0], found[0][0])
        if len(found) == 1:
            return [float(of_words.sum()) for of_words in found[0]]
        return [_mean(of_networks) for of_networks in zip(*found, strict=True)]

    def _compare(self, sentence: int, source: bytes, text: bytes, own: np.ndarray) -> None:
        """Compare what a translation scores with its own sentence, and with the one beside it."""
        beside = self._source.beside(sentence)
        if text and source.strip() and beside.strip() and source != beside:
            network = self._networks[0]
            ids = network.ids(*self._words[0].pair(beside, text))
            (other,) = network.word_log_probs([ids])
            self._own.add(float(own.mean()), float(other.mean()))

    def finish(self) -> None:
        """Check that lists, source and networks belong together."""
        self._source.finish()
        for known in self._known:
            known.check()
        self._own.finish()


def _mean(of_networks: Sequence[np.ndarray]) -> float:
    """Return log p of words whose probabilities are means over the networks."""
    log_probs = np.stack(of_networks)
    return float((np.logaddexp.reduce(log_probs, axis=0) - np.log(len(log_probs))).sum())
