"""Which fold a source phrase belongs to, told by a hash of its words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.phrases import Hashes, Phrases, mixed
from moses_feature.runtime.errors import UsageError

_WORDS, _PHRASES = 1, 2  # seeds
MOST_FOLDS = 100
"""Each is a network that is trained and kept."""


def phrase_hashes(phrases: Phrases) -> Hashes:
    """Return a 64-bit hash of each phrase (n,), by its word ids: what a network sees of it."""
    place = np.arange(len(phrases.ids)) - np.repeat(phrases.offsets[:-1], np.diff(phrases.offsets))
    # Words that change places change the sum: each is mixed with its place.
    numbered = phrases.ids.astype(np.uint64) + (place.astype(np.uint64) << np.uint64(32))
    sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed(numbered, _WORDS), dtype=np.uint64)])
    return mixed(sums[phrases.offsets[1:]] - sums[phrases.offsets[:-1]], _PHRASES)


@dataclass(frozen=True)
class Folds:
    """A random partition of all phrases into parts of about the same size.

    Attributes:
        count: the number of parts, at least 2.
        seed: of the partition.
    """

    count: int
    seed: int

    def __post_init__(self) -> None:
        if not 2 <= self.count <= MOST_FOLDS:
            raise UsageError(f"folds: expected 2 to {MOST_FOLDS}, found {self.count}")

    def of(self, hashes: Hashes) -> NDArray[np.int64]:
        """Return the fold, 0 to count - 1, of each phrase, given by its hash."""
        return (mixed(hashes, self.seed) % np.uint64(self.count)).astype(np.int64)
