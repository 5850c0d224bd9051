"""What tuning needs of the n-best lists or lattices of all its iterations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from mert.optimisers.space import Optimum, SearchSpace
from moses_feature.arrays import Floats, Integers
from moses_feature.moses.features import FeatureSet


class Added(NamedTuple):
    """What an iteration added.

    Attributes:
        new: how much of it no earlier iteration had found; 0 ends the tuning.
        total: how much there is now.
        said: the same for a log.
        statistics: (width,) of the best translations of all sentences, summed.
    """

    new: int
    total: int
    said: str
    statistics: Integers


class Evidence(Protocol):
    """What the searches have found so far: n-best lists, or lattices."""

    @property
    def nothing_new(self) -> str:
        """Why tuning ends when an iteration has added nothing."""

    def decode(self, features: FeatureSet, path: Path, report: Callable[[int], None]) -> None:
        """Translate, and write what is found into a file."""

    def add(self, path: Path, weights: Floats) -> Added:
        """Add what is in a file; `weights` (tuneable features,) are those it was made with."""

    def has_matches(self) -> bool:
        """Return whether any translation has a match in its references."""

    def constants(self) -> list[str]:
        """Return the features that are the same for all translations of every sentence."""

    def optimum(self, space: SearchSpace, seed: int) -> Optimum:
        """Return the weights with the best metric on all of it."""

    def write(self, directory: Path) -> None:
        """Write what Moses' own optimisers can read, if there is such a thing."""
