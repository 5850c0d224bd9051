"""The word alignments of pairs as packed arrays."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from moses_feature.arrays import Integers
from moses_feature.models.phrases import Phrases
from moses_feature.training.objective import Rows


@dataclass(frozen=True)
class Links:
    """Which words of pairs are linked: two places a link, as a network reads and writes the pairs.

    Attributes:
        read: the places of the words that are read.
        written: those of the words that are written.
    """

    read: Phrases
    written: Phrases

    def of(self, rows: Rows) -> Integers:
        """Return the links (3, links) of pairs: which pair, written place, read place."""
        read, written = self.read.some(rows), self.written.some(rows)
        pair = np.repeat(np.arange(len(rows)), np.diff(read.offsets))
        return np.stack([pair, written.ids.astype(np.int64), read.ids.astype(np.int64)])


class LinkCollection:
    """The links of pairs while they are read; 8 bytes a link."""

    def __init__(self) -> None:
        self._read, self._written, self._counts = array("I"), array("I"), array("I")

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, read: Integers, written: Integers) -> None:
        """Add those of the next pair."""
        self._read.extend(read.tolist())
        self._written.extend(written.tolist())
        self._counts.append(len(read))

    def links(self, rows: Rows) -> Links:
        """Return those of some pairs."""
        offsets = np.zeros(len(self._counts) + 1, dtype=np.int64)
        np.cumsum(self._counts, out=offsets[1:])
        sides = (np.frombuffer(side, dtype=np.uint32) for side in (self._read, self._written))
        return Links(*(Phrases(side, offsets).some(rows) for side in sides))
