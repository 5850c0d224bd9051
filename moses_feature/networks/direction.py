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
class Reading:
    """The direction in which a network reads and writes pairs.

    Attributes:
        reverse: it reads the target side and scores the source side: p(source | target).
        right_to_left: it writes the last word first.
    """

    reverse: bool = False
    right_to_left: bool = False

    def __str__(self) -> str:
        """Return what the network models."""
        what = "p(source | target)" if self.reverse else "p(target | source)"
        return f"{what}, {'right to left' if self.right_to_left else 'left to right'}"

    @classmethod
    def of_config(cls, config: Json, path: Path) -> Reading:
        """Return that of a model; older models read forward.

        Raises:
            FormatError: it is damaged.
        """
        return record(cls, config.get("reading", {}), path, "the direction of a model")

    def sides(self, source: Sequence[T], target: Sequence[T]) -> tuple[list[T], list[T]]:
        """Return what the network reads and what it writes, in its order."""
        read, written = self.texts(source, target)
        return list(read), list(reversed(written) if self.right_to_left else written)

    def texts(self, source: T, target: T) -> tuple[T, T]:
        """Return what is of the side that the network reads, and of the one that it writes.

        The other way round, too: of what is read and what is written the source and the target.
        """
        return (target, source) if self.reverse else (source, target)

    def places(self, source: Integers, target: Integers, words: int) -> tuple[Integers, Integers]:
        """Return the places of linked words in what the network reads and in what it writes.

        Args:
            source: places in the source side.
            target: in the target side.
            words: how many words the network writes.
        """
        read, written = self.texts(source, target)
        return read, words - 1 - written if self.right_to_left else written


FORWARD = Reading()
