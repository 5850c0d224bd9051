"""A phrase table in parts of some thousand lines: what is scored, compressed and noted at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    SCORES,
    SEPARATOR,
    SOURCE,
    count_scores,
    split_fields,
    tokens,
)
from moses_feature.runtime.errors import FormatError, MosesFeatureError

MAX_LENGTH = 10
"""Tokens of the longest phrase that is looked for in a text, as in Moses' script."""


BYTES = 1 << 24
"""Bytes of a part that is full, however few lines it has."""


@dataclass(frozen=True)
class Part:
    """Lines that are worked on together.

    Attributes:
        number: of the part, from 0.
        content: the lines that are kept, with their line ends.
        numbers: their line numbers (1-based).
        scores: how many scores each has.
        lines_read: lines of the table up to the end of the part.
        digest: SHA-256 of them.
        fraction: share of the file that they take, None for a stream.
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
        """The lines that are kept, with their line ends."""
        *whole, rest = self.content.split(b"\n")
        lines = [line + b"\n" for line in whole]
        return [*lines, rest] if rest else lines


def checked_fields(line: bytes, path: str, number: int, scores: int) -> list[bytes]:
    """Split a line into its fields.

    Args:
        line: of a phrase table.
        path: of the table, for error messages.
        number: of the line.
        scores: how many scores it should have.

    Raises:
        FormatError: it is not a line of a phrase table, or has another number of scores.
    """
    fields = split_fields(line, path, number)
    if (found := count_scores(fields[SCORES], path, number)) != scores:
        expected = f"{scores} scores as in the lines before"
        raise FormatError(path, expected, f"{found}", number)
    return fields


class PartReader:
    """Cuts a table into parts, where a source phrase ends.

    Args:
        reader: of the table.
        size: lines of a part, at least, but for the last one and for parts of many bytes; twice
            as many at most, even if they are all of one source phrase.
        kept: the source phrases whose lines are kept; None for all lines.
        scores: how many scores a line should have; None for as many as the first one.
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
        """Read over the parts and their lines that an earlier run has done.

        Raises:
            MosesFeatureError: they are not the same.
        """
        self._number = parts
        for _ in range(lines):
            next(self._lines, None)
        if lines and self._reader.digest() != digest:
            raise MosesFeatureError(
                f"{self._reader.path}: the first {lines} lines are not those that the unfinished "
                "run read"
            )

    def __iter__(self) -> Iterator[Part]:
        """Yield the parts; where no line is kept, one without lines.

        Raises:
            FormatError: the first line is not one of a phrase table; with `kept`, any line is not.
        """
        reader = self._reader
        lines: list[bytes] = []
        numbers: list[int] = []
        size = 0
        for line in self._lines:
            if self.scores is None:
                fields = split_fields(line, reader.path, reader.line_number)
                self.scores = count_scores(fields[SCORES], reader.path, reader.line_number)
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
        """Return whether a part ends with a line, given how full it is: 1 is what it should be."""
        if filled < 1.0:
            return False
        return filled >= 2.0 or _source(self._reader.peek()) != _source(line)

    def _is_kept(self, line: bytes) -> bool:
        assert self._kept is not None  # noqa: S101
        assert self.scores is not None  # noqa: S101
        fields = checked_fields(line, self._reader.path, self._reader.line_number, self.scores)
        return b" ".join(tokens(fields[SOURCE])) in self._kept

    def _part(self, lines: list[bytes], numbers: Sequence[int]) -> Part:
        reader = self._reader
        self._number += 1
        if self._kept is None:  # smaller than so many numbers
            numbers = range(reader.line_number - len(lines) + 1, reader.line_number + 1)
        return Part(
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

    Tokens of a phrase are one space apart. The rule is that of Moses'
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
