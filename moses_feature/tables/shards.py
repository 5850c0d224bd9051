"""Shards of a table that separate runs augment, and the whole made of them again.

Shard I of N has every N-th part of the table, from the I-th on. Its output is a table of its own,
whose `*.features.json` says where its parts end; merged in turn, they are to the byte what one run
would have written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, whole_file, write_json
from moses_feature.tables.features_json import features_json, read_features

SUMMED = ("lines_written", "clipped_scores", "unknown_source_words", "unknown_target_words")
OWN = ("output", "command", "shard", *SUMMED)


@dataclass(frozen=True)
class Shard:
    """Which parts of a table a run augments: those whose number is `index` modulo `count`."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `I/N`, I from 1 to N.

        Raises:
            UsageError: it is something else.
        """
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        index, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= index <= count:
            raise UsageError(f"--shard {text}: expected I/N, I from 1 to N, such as 3/8")
        return cls(index - 1, count)

    def facts(self, sizes: list[int], digest: str) -> Json:
        """Return what `merge` must know of the output.

        Args:
            sizes: bytes of its parts.
            digest: SHA-256 of the file, in hexadecimal.
        """
        return {**asdict(self), "parts": sizes, "sha256": digest}

    def has(self, part: int) -> bool:
        """Return whether a part, counted from 0, is of this shard."""
        return part % self.count == self.index


def merge(shards: Sequence[str], output: str, command: str = "") -> Json:
    """Write the whole table and its `*.features.json`.

    Args:
        shards: the outputs of all N runs, in any order.
        output: where to write; of the same suffix.
        command: what the user typed.

    Returns:
        what is written into `*.features.json`.

    Raises:
        UsageError: the names make no sense.
        MosesFeatureError: a shard is missing or twice there, or its file is not whole.
        FormatError: they are not of the same table, model and settings.
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
        path: of the file.
        facts: what is said of it.
        shard: which one it is.
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
    """Check that the shards have the parts that they should, and their files the right size."""
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
        content = [stack.enter_context(closing(_Content(shard))) for shard in shards]
        with temporary.open("wb") as file:
            for turn in zip_longest(*(shard.sizes for shard in shards), fillvalue=0):
                for size, of_shard in zip(turn, content, strict=True):
                    file.write(of_shard.read(size))
        for of_shard in content:
            of_shard.check_end()


class _Content:
    """What a shard's file holds, part by part."""

    def __init__(self, shard: _ShardParts) -> None:
        self._shard = shard
        self._hash = hashlib.sha256()
        try:
            self._file = Path(shard.path).open("rb")  # noqa: SIM115
        except OSError as error:
            raise MosesFeatureError(f"{shard.path}: {error.strerror}") from error

    def close(self) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        content = self._file.read(size)
        self._hash.update(content)
        return content

    def check_end(self) -> None:
        if self._file.read(1) or self._hash.hexdigest() != self._shard.digest:
            expected = f"the file that {features_json(self._shard.path)} describes"
            raise FormatError(self._shard.path, expected, "another one")
