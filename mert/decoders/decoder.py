"""What the tuner needs of a decoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from moses_feature.moses.features import FeatureSet

if TYPE_CHECKING:
    from moses_feature.decoder.decoder import SearchErrors


class Decoder(Protocol):
    """Translates one text, again and again, with other weights each time."""

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
            features: whose weights to use.
            count: distinct translations of each sentence, at most.
            path: the file; it appears when it is whole.
            report: told now and then how many sentences are done.
        """

    def search_errors(self, features: FeatureSet, count: int) -> SearchErrors | None:
        """Return how many of the first sentences a search twice as wide translates better.

        Args:
            features: whose weights to use.
            count: sentences to try, at most.

        Returns:
            None if the decoder cannot tell.
        """

    def close(self) -> None:
        """Free what the decoder holds: processes, scratch directories."""
