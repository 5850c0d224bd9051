"""A phrase table in parts of some thousand lines, and shards that separate runs augment.

A part is scored, compressed and recorded at once. Shard I of N has every N-th part of the table,
from the I-th on. Its output is a table of its own, whose `*.features.json` says where its parts
end. Merged in turn, the shards are to the byte what one run would have written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    SCORES,
    SEPARATOR,
    SOURCE,
    checked_fields,
    tokens,
)
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, whole_file, write_json
from moses_feature.tables.features_json import features_json, read_features

MAX_LENGTH = 10
"""The longest phrase, in tokens, that is extracted from a text, as in Moses' script."""


BYTES = 1 << 24
"""A part of this many bytes is full, however few lines it has."""


@dataclass(frozen=True)
class Part:
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

    def __iter__(self) -> Iterator[Part]:
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

    def _part(self, lines: list[bytes], numbers: Sequence[int]) -> Part:
        reader = self._reader
        self._number += 1
        if self._kept is None:  # a range takes less memory than the numbers
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


SUMMED = ("lines_written", "clipped_scores", "unknown_source_words", "unknown_target_words")
OWN = ("output", "command", "shard", *SUMMED)


@dataclass(frozen=True)
class Shard:
    """The parts of a table that a run augments: number modulo `count` is `index`."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse `I/N`, I from 1 to N.

        Raises:
            UsageError: another text.
        """
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        index, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= index <= count:
            raise UsageError(f"--shard {text}: expected I/N, I from 1 to N, such as 3/8")
        return cls(index - 1, count)

    def facts(self, sizes: list[int], digest: str) -> Json:
        """Return the description of the output for `merge`.

        Args:
            sizes: bytes of its parts.
            digest: SHA-256 of the file, in hexadecimal.
        """
        return {**asdict(self), "parts": sizes, "sha256": digest}

    def has(self, part: int) -> bool:
        """Return whether a part (counted from 0) belongs to this shard."""
        return part % self.count == self.index


def merge(shards: Sequence[str], output: str, command: str = "") -> Json:
    """Write the whole table and its `*.features.json`.

    Args:
        shards: the outputs of all N runs, in any order.
        output: where to write; with the suffix of the shards.
        command: the command line, for the record.

    Returns:
        The content of `*.features.json`.

    Raises:
        UsageError: bad file names.
        MosesFeatureError: a shard is missing or given twice, or its file is not whole.
        FormatError: shards of different tables, models or settings.
    """
    suffix = Path(shards[0]).suffix
    if output == STANDARD_STREAM or {Path(p).suffix for p in (*shards, output)} != {suffix}:
        expected = f"files with {suffix}" if suffix else "files without a suffix"
        raise UsageError(f"expected {expected}, as {shards[0]}, found {output}")
    written = {path.resolve() for path in (Path(output), features_json(output))}
    if any({Path(p).resolve(), features_json(p).resolve()} & written for p in shards):
        raise UsageError(f"{output} would overwrite a shard, or its description")
    parts = [_ShardParts.of(path) for path in shards]
    _check_same(parts)
    parts.sort(key=lambda part: part.shard.index)
    count = parts[0].shard.count
    indices = [part.shard.index for part in parts]
    if len(parts) != count or indices != list(range(count)):
        found = ", ".join(f"{part.shard.index + 1}" for part in parts)
        raise MosesFeatureError(
            f"expected the shards 1 to {count} of {count}, each once, found {found}"
        )
    _check_turns(parts)
    _interleave(parts, Path(output))
    merged = {name: value for name, value in parts[0].facts.items() if name != "shard"}
    merged |= {"output": Path(output).name, "command": command}
    merged["commands_of_shards"] = [part.facts.get("command") for part in parts]
    for name in SUMMED:
        merged[name] = sum(part.facts[name] for part in parts)
    write_json(features_json(output), merged)
    return merged


@dataclass(frozen=True)
class _ShardParts:
    """The output of one run.

    Attributes:
        path: the file.
        facts: its description.
        shard: which shard it is.
        sizes: bytes of its parts.
        digest: SHA-256 of the file.
    """

    path: str
    facts: Json
    shard: Shard
    sizes: list[int]
    digest: str

    @classmethod
    def of(cls, path: str) -> _ShardParts:
        """Read the description of a file."""
        facts = read_features(path)
        if "shard" not in facts:
            raise FormatError(features_json(path), "a shard", "a whole table")
        try:
            said = facts["shard"]
            shard = Shard(said["index"], said["count"])
            sizes, digest = said["parts"], said["sha256"]
            numbers = [shard.index, shard.count, *sizes, *(facts[name] for name in SUMMED)]
        except (KeyError, TypeError) as error:
            raise FormatError(
                features_json(path), "a description of a shard", f"a damaged file ({error})"
            ) from error
        if not (
            all(type(number) is int and number >= 0 for number in numbers)
            and shard.index < shard.count
            and isinstance(sizes, list)
        ):
            raise FormatError(features_json(path), "counts and sizes", "something else")
        return cls(path, facts, shard, sizes, digest)


def _check_same(parts: Sequence[_ShardParts]) -> None:
    first, *others = parts
    for other in others:
        described = features_json(first.path)
        for name in {**first.facts, **other.facts}:
            if name not in OWN and first.facts.get(name) != other.facts.get(name):
                expected = f"{name} {first.facts.get(name)} as in {described}"
                raise FormatError(features_json(other.path), expected, f"{other.facts.get(name)}")
        if other.shard.count != first.shard.count:
            expected = f"one of {first.shard.count} shards as in {described}"
            raise FormatError(features_json(other.path), expected, f"of {other.shard.count}")


def _check_turns(shards: Sequence[_ShardParts]) -> None:
    """Check that each shard has the right parts, and its file the right size."""
    parts = sum(len(shard.sizes) for shard in shards)
    for shard in shards:
        expected = len(range(shard.shard.index, parts, shard.shard.count))
        if len(shard.sizes) != expected:
            raise FormatError(
                features_json(shard.path), f"{expected} of {parts} parts", f"{len(shard.sizes)}"
            )
        try:
            size = Path(shard.path).stat().st_size
        except OSError as error:
            raise MosesFeatureError(f"{shard.path}: {error.strerror}") from error
        if size != sum(shard.sizes):
            expected_size = f"the {sum(shard.sizes)} bytes that {features_json(shard.path)} says"
            raise FormatError(shard.path, expected_size, f"{size}")


def _interleave(shards: Sequence[_ShardParts], output: Path) -> None:
    """Write the parts of all shards in turn."""
    with ExitStack() as stack:
        temporary = stack.enter_context(whole_file(output))
        files = [stack.enter_context(_opened(shard.path)) for shard in shards]
        hashes = [hashlib.sha256() for _ in shards]
        with temporary.open("wb") as file:
            for turn in zip_longest(*(shard.sizes for shard in shards), fillvalue=0):
                for size, of_shard, hashed in zip(turn, files, hashes, strict=True):
                    content = of_shard.read(size)
                    hashed.update(content)
                    file.write(content)
        for shard, of_shard, hashed in zip(shards, files, hashes, strict=True):
            if of_shard.read(1) or hashed.hexdigest() != shard.digest:
                expected = f"the file that {features_json(shard.path)} describes"
                raise FormatError(shard.path, expected, "another one")


def _opened(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise MosesFeatureError(f"{path}: {error.strerror}") from error
