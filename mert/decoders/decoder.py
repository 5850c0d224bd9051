"""The interface of a decoder for the tuner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from moses_feature.moses.features import FeatureSet

if TYPE_CHECKING:
    from moses_feature.decoder.decoder import SearchErrors


class Decoder(Protocol):
    """Translates one text, again and again with other weights."""

    @property
    def features(self) -> FeatureSet:
        """The features with the weights of the ini."""

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate the whole text and write its n-best lists, compressed by gzip.

        Args:
            features: the features, whose weights are used.
            count: distinct translations of each sentence, at most.
            path: the file; it appears when it is complete.
            report: called with the number of sentences done since the last call.
        """

    def search_errors(self, features: FeatureSet, count: int) -> SearchErrors | None:
        """Count the first sentences that a search with twice the limits translates better.

        Args:
            features: the features, whose weights are used.
            count: sentences to try, at most.

        Returns:
            None if the decoder cannot count them.
        """

    def close(self) -> None:
        """Free the resources of the decoder: processes, scratch directories."""
