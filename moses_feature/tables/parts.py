"""A phrase table in parts of some thousand lines, each scored, compressed and recorded at once.

The table alone decides where a part ends, so that its bytes depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    SCORES,
    SEPARATOR,
    SOURCE,
    checked_fields,
    tokens,
)
from moses_feature.runtime.errors import MosesFeatureError

MAX_LENGTH = 10
"""The longest phrase, in tokens, that is extracted from a text, as in Moses' script."""


BYTES = 1 << 24
"""A part of this many bytes is full, however few lines it has."""


@dataclass(frozen=True)
class PartOfTable:
    """Lines that are processed together.

    Attributes:
        number: the number of the part, from 0.
        content: the kept lines, with their line ends.
        numbers: their line numbers (1-based).
        scores: the number of scores in each.
        lines_read: lines of the table up to the end of the part.
        digest: SHA-256 of these lines.
        fraction: the share of the file up to the end of the part, None for a stream.
    """

    number: int
    content: bytes
    numbers: Sequence[int]
    scores: int
    lines_read: int
    digest: str
    fraction: float | None

    @property
    def lines(self) -> list[bytes]:
        """The kept lines, with their line ends."""
        *whole, rest = self.content.split(b"\n")
        lines = [line + b"\n" for line in whole]
        return [*lines, rest] if rest else lines


class PartReader:
    """Cuts a table into parts, where a source phrase ends.

    Args:
        reader: the reader of the table.
        size: the least number of lines in a part (except the last one, and parts of many bytes); a
            part has at most twice as many, even if they all have one source phrase.
        kept: the source phrases whose lines are kept; None for all lines.
        scores: the expected number of scores in a line; None for that of the first line.
    """

    def __init__(
        self, reader: LineReader, size: int, kept: set[bytes] | None, scores: int | None
    ) -> None:
        self._reader = reader
        self._lines = iter(reader)
        self._size = size
        self._kept = kept
        self._number = 0
        self.scores = scores

    def skip(self, parts: int, lines: int, digest: str) -> None:
        """Read over the parts and lines that an earlier run has done.

        Raises:
            MosesFeatureError: the lines are not the same.
        """
        self._number = parts
        for _ in range(lines):
            next(self._lines, None)
        if lines and self._reader.digest() != digest:
            raise MosesFeatureError(
                f"{self._reader.path}: the first {lines} lines are not those that the unfinished "
                "run read"
            )

    def __iter__(self) -> Iterator[PartOfTable]:
        """Yield the parts; if no line is kept, one part without lines.

        Raises:
            FormatError: the first line is not one of a phrase table; with `kept`, any line is not.
        """
        reader = self._reader
        lines: list[bytes] = []
        numbers: list[int] = []
        size = 0
        for line in self._lines:
            if self.scores is None:
                fields = checked_fields(line, reader.path, reader.line_number)
                self.scores = len(fields[SCORES].split())
            if self._kept is None or self._is_kept(line):
                lines.append(line)
                numbers.append(reader.line_number)
                size += len(line)
                if self._ends_here(line, max(len(lines) / self._size, size / BYTES)):
                    yield self._part(lines, numbers)
                    lines, numbers, size = [], [], 0
        if lines or self._number == 0:
            yield self._part(lines, numbers)

    def _ends_here(self, line: bytes, filled: float) -> bool:
        """Return whether a part ends with a line; `filled` is its size relative to `size`."""
        if filled < 1.0:
            return False
        return filled >= 2.0 or _source(self._reader.peek()) != _source(line)

    def _is_kept(self, line: bytes) -> bool:
        assert self._kept is not None  # noqa: S101
        assert self.scores is not None  # noqa: S101
        fields = checked_fields(line, self._reader.path, self._reader.line_number, self.scores)
        return b" ".join(tokens(fields[SOURCE])) in self._kept

    def _part(self, lines: list[bytes], numbers: Sequence[int]) -> PartOfTable:
        reader = self._reader
        self._number += 1
        if self._kept is None:  # a range takes less memory than the numbers
            numbers = range(reader.line_number - len(lines) + 1, reader.line_number + 1)
        return PartOfTable(
            self._number - 1,
            b"".join(lines),
            numbers,
            self.scores or 0,
            reader.line_number,
            reader.digest(),
            reader.fraction(),
        )


def _source(line: bytes) -> bytes:
    return line.partition(SEPARATOR)[SOURCE]


def phrases_in_texts(paths: Iterable[str]) -> tuple[set[bytes], list[str]]:
    """Return all substrings of up to 10 tokens of the texts' lines, and the texts' SHA-256.

    Tokens of a phrase are separated by one space. The rule is that of Moses'
    `scripts/training/filter-model-given-input.pl`.
    """
    phrases, digests = set(), []
    for path in paths:
        with LineReader(path) as reader:
            for line in reader:
                words = tokens(line)
                for start in range(len(words)):
                    for end in range(start + 1, min(start + MAX_LENGTH, len(words)) + 1):
                        phrases.add(b" ".join(words[start:end]))
            digests.append(reader.digest())
    return phrases, digests
