"""Which fold a source phrase belongs to, told by a hash of its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from moses_feature.errors import UsageError
from moses_feature.models.phrases import Phrases

Hashes = NDArray[np.uint64]
_WORDS, _PHRASES = 1, 2  # seeds
MOST_FOLDS = 100
"""Each is a network that is trained and kept."""


def phrase_hash(*sides: Sequence[bytes]) -> int:
    """Return a 64-bit hash of a phrase, or of both sides of a phrase pair."""
    text = b"\t".join(b" ".join(words) for words in sides)
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def phrase_hashes(phrases: Phrases) -> Hashes:
    """Return a 64-bit hash of each phrase (n,), by its word ids: what a network sees of it."""
    place = np.arange(len(phrases.ids)) - np.repeat(phrases.offsets[:-1], np.diff(phrases.offsets))
    # Words that change places change the sum: each is mixed with its place.
    numbered = phrases.ids.astype(np.uint64) + (place.astype(np.uint64) << np.uint64(32))
    sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed(numbered, _WORDS), dtype=np.uint64)])
    return mixed(sums[phrases.offsets[1:]] - sums[phrases.offsets[:-1]], _PHRASES)


def mixed(hashes: Hashes, seed: int) -> Hashes:
    """Mix hashes with a seed (SplitMix64's finaliser), so that each seed orders them anew."""
    mixed = hashes ^ np.random.default_rng(seed).integers(1 << 63, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


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
