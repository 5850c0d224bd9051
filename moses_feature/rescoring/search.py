"""RNNsearch as a feature of whole translations; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from moses_feature.errors import UsageError
from moses_feature.models.table_words import TableWords
from moses_feature.rescoring.nbest import AnyTranslation
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
        first = self._networks[0].reading
        for directory, network in zip(directories, self._networks, strict=True):
            if network.reading != first:
                raise UsageError(
                    f"{name}: expected networks of one direction, as {directories[0]} "
                    f"({first}), found {directory} ({network.reading}): give them different names"
                )

    def scores(self, sentence: int, translations: Sequence[AnyTranslation]) -> list[float]:
        """Return log p of each translation, or of the source given it."""
        source = self._source.sentence(sentence)
        texts = [b" ".join(of.words) for of in translations]
        found = []
        for network, words in zip(self._networks, self._words, strict=True):
            pairs = [network.ids(*words.pair(source, text)) for text in texts]
            found.append(network.word_log_probs(pairs))
        if len(found) == 1:
            return [float(of_words.sum()) for of_words in found[0]]
        return [_mean(of_networks) for of_networks in zip(*found, strict=True)]

    def finish(self) -> None:
        """Check that the source has no more sentences than the lists."""
        self._source.finish()


def _mean(of_networks: Sequence[np.ndarray]) -> float:
    """Return log p of words whose probabilities are means over the networks."""
    log_probs = np.stack(of_networks)
    return float((np.logaddexp.reduce(log_probs, axis=0) - np.log(len(log_probs))).sum())
