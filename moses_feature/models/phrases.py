"""Phrases of word ids as packed arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Phrases:
    """Phrases of word ids, packed one after the other.

    Attributes:
        ids: (total words,) word ids, without end-of-phrase symbols.
        offsets: (n + 1,) where each phrase begins, and the end of the last.
    """

    def __init__(self, ids: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the lengths in words of the phrases in `rows`."""
        lengths: NDArray[np.int64] = self.offsets[rows + 1] - self.offsets[rows]
        return lengths

    def padded(
        self, rows: NDArray[np.integer], padding: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the phrases in `rows` as one array, and their lengths.

        Returns:
            ids (len(rows), longest + 1), `padding` after the end of each phrase (at least once),
            and lengths (len(rows),).
        """
        lengths = self.lengths(rows)
        width = int(lengths.max(initial=0)) + 1
        column = np.arange(width)
        inside = column < lengths[:, None]
        padded = np.full((len(rows), width), padding, dtype=np.int64)
        padded[inside] = self.ids[(self.offsets[rows][:, None] + column)[inside]]
        return padded, lengths

    def some(self, rows: NDArray[np.integer]) -> Phrases:
        """Return the phrases in `rows`."""
        lengths = self.lengths(rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return Phrases(self.ids[places], offsets)

    def last_word_first(self) -> Phrases:
        """Return the phrases, each with its words in the opposite order."""
        lengths = np.diff(self.offsets)
        mirrored = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, lengths)
        return Phrases(self.ids[mirrored - np.arange(len(self.ids))], self.offsets)

    @classmethod
    def pack(cls, phrases: Sequence[Sequence[int]]) -> Phrases:
        """Pack lists of word ids."""
        offsets = np.zeros(len(phrases) + 1, dtype=np.int64)
        np.cumsum([len(phrase) for phrase in phrases], out=offsets[1:])
        flat = [word for phrase in phrases for word in phrase]
        return cls(np.array(flat, dtype=np.uint32), offsets)
