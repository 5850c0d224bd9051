"""The direction in which a network reads and writes pairs; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import record

T = TypeVar("T")


@dataclass(frozen=True)
class Direction:
    """The direction in which a network reads and writes pairs.

    Attributes:
        reverse: the network reads the target side and scores the source side: p(source | target).
        right_to_left: the network writes the last word first.
    """

    reverse: bool = False
    right_to_left: bool = False

    def __str__(self) -> str:
        """Return the direction in words."""
        what = "p(source | target)" if self.reverse else "p(target | source)"
        return f"{what}, {'right to left' if self.right_to_left else 'left to right'}"

    @classmethod
    def of_config(cls, config: Json, path: Path) -> Direction:
        """Return the direction in a model's config; older models, without one, read forward.

        Raises:
            FormatError: the direction is damaged.
        """
        return record(cls, config.get("reading", {}), path, "the direction of a model")

    def sides(self, source: Sequence[T], target: Sequence[T]) -> tuple[list[T], list[T]]:
        """Return the words that the network reads, and those that it writes in its order."""
        read, written = self.texts(source, target)
        return list(read), list(reversed(written) if self.right_to_left else written)

    def texts(self, source: T, target: T) -> tuple[T, T]:
        """Return the side that the network reads, and the side that it writes.

        The inverse is the same: from read and written sides to source and target.
        """
        return (target, source) if self.reverse else (source, target)

    def places(self, source: Integers, target: Integers, words: int) -> tuple[Integers, Integers]:
        """Return the places of linked words in the read and in the written sequence.

        Args:
            source: places in the source side.
            target: places in the target side.
            words: the number of words that the network writes.
        """
        read, written = self.texts(source, target)
        return read, words - 1 - written if self.right_to_left else written


FORWARD = Direction()
