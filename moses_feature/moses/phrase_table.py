"""Moses phrase tables as bytes: read line by line, one field grown, nothing else touched.

A line is `source ||| target ||| scores ||| alignment ||| counts ||| sparse ||| properties`, the
fields after the scores optional (Moses: `phrase-extract/consolidate-main.cpp`). Fields are split
on `|||`, tokens on space and tab alone, as in Moses
(`moses/TranslationModel/RuleTable/LoaderStandard.cpp`), so that other bytes that Unicode counts
as white space, and bytes that are not UTF-8 at all, pass through.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from lzma import LZMADecompressor, LZMAError
from pathlib import Path
from typing import Any, BinaryIO, cast

from xopen import xopen

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError

from moses_feature.errors import FormatError, MosesFeatureError, shown

SEPARATOR = b"|||"
SOURCE, TARGET, SCORES, ALIGNMENT, COUNTS, SPARSE, PROPERTIES = range(7)
COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
STANDARD_STREAM = "-"

NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SCORES = re.compile(rb"[ \t]*%b(?:[ \t]+%b)*[ \t\r\n]*" % (NUMBER.pattern, NUMBER.pattern))


class LineReader:
    r"""The lines of a text file, compressed or not, as bytes with their line ends.

    Lines end in `\n` alone. The compression is recognised by content, else by suffix; `-` is the
    standard input. `line_number` is that of the last line read (1-based), `digest()` the SHA-256
    of the uncompressed lines read so far, `fraction()` the share of the file's bytes consumed.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.line_number = 0
        self._hash = hashlib.sha256()
        self._ahead = b""
        self._raw = self._open_raw()
        self._size = 0 if self.path == STANDARD_STREAM else Path(self.path).stat().st_size
        try:
            self._lines = self._decompressed()
        except _READ_ERRORS as error:
            self._raw.close()
            raise MosesFeatureError(f"{self.path}: cannot be read: {error}") from error

    def _open_raw(self) -> io.BufferedReader:
        if self.path == STANDARD_STREAM:
            if sys.stdin is None or sys.stdin.closed:
                raise MosesFeatureError("the standard input is closed, or has been read already")
            return cast(io.BufferedReader, sys.stdin.buffer)
        if Path(self.path).is_dir():
            raise MosesFeatureError(f"{self.path}: expected a file, found a directory")
        try:
            if is_compressed(self.path) and Path(self.path).stat().st_size == 0:
                raise FormatError(self.path, f"a {Path(self.path).suffix} file", "an empty file")
            return Path(self.path).open("rb")
        except OSError as error:
            raise MosesFeatureError(f"{self.path}: {error.strerror}") from error

    def _decompressed(self) -> BinaryIO:
        start = self._raw.peek(6)
        for magic, decompressor in _MEMBERS_TO_CHECK.items():
            if start.startswith(magic):
                members: io.RawIOBase = _Members(self._raw, decompressor)
                return io.BufferedReader(members)
        lines: BinaryIO = xopen(self._raw, "rb", threads=0)
        return lines

    def __enter__(self) -> LineReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        if self.path != STANDARD_STREAM:
            self._raw.close()

    def __iter__(self) -> Iterator[bytes]:
        try:
            while line := self._ahead or next(self._lines, b""):
                self._ahead = b""
                self.line_number += 1
                self._hash.update(line)
                yield line
        except _READ_ERRORS as error:
            raise self._damaged(error) from error

    def peek(self) -> bytes:
        """Return the line after the last one that was read, empty at the end of the file."""
        try:
            self._ahead = self._ahead or next(self._lines, b"")
        except _READ_ERRORS as error:
            raise self._damaged(error) from error
        return self._ahead

    def _damaged(self, error: Exception) -> MosesFeatureError:
        return MosesFeatureError(
            f"{self.path} after line {self.line_number}: expected more data, "
            f"found a damaged or truncated file ({error})"
        )

    def provenance(self, role: str) -> dict[str, Any]:
        """Return what was read, as JSON for a model's config."""
        return {
            "role": role,
            "path": self.path,
            "lines": self.line_number,
            "sha256": self.digest(),
        }

    def digest(self) -> str:
        """Return the SHA-256 of the uncompressed lines read so far, in hexadecimal."""
        return self._hash.hexdigest()

    def fraction(self) -> float | None:
        """Return the share of the file that has been read, 0 to 1, or None for a stream."""
        return self._raw.tell() / self._size if self._size else None


_READ_ERRORS = (EOFError, OSError, zlib.error, LZMAError, ZstdError)
_MEMBERS_TO_CHECK: dict[bytes, Callable[[], bz2.BZ2Decompressor | LZMADecompressor]] = {
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": LZMADecompressor,
}


class _Members(io.RawIOBase):
    """Decompresses bzip2 or xz members one after the other.

    The standard library takes what follows a member and is damaged for the end of the file, so
    that the rest of a table would be lost without a word.
    """

    def __init__(
        self, raw: BinaryIO, make: Callable[[], bz2.BZ2Decompressor | LZMADecompressor]
    ) -> None:
        self._raw = raw
        self._make = make
        self._member = make()
        self._unused = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        content = b""
        while not content:
            if self._member.eof:
                self._unused = self._member.unused_data or self._raw.read(io.DEFAULT_BUFFER_SIZE)
                if not self._unused:
                    return 0
                self._member = self._make()
            elif self._member.needs_input and not self._unused:
                self._unused = self._raw.read(io.DEFAULT_BUFFER_SIZE)
                if not self._unused:
                    raise EOFError("compressed data end in the middle of a member")
            content = self._member.decompress(self._unused, len(buffer))
            self._unused = b""
        buffer[: len(content)] = content
        return len(content)


def split_fields(line: bytes, path: str | Path, line_number: int) -> list[bytes]:
    """Split a line of a phrase table into its 3 to 7 fields, the line end left on the last.

    Raises:
        FormatError: another number of fields.
    """
    fields = line.split(SEPARATOR)
    if not 3 <= len(fields) <= 7:
        raise FormatError(
            path, "3 to 7 fields separated by |||", f"{len(fields)}: {shown(line)}", line_number
        )
    return fields


def count_scores(score_field: bytes, path: str | Path, line_number: int) -> int:
    """Return how many scores a score field holds.

    Raises:
        FormatError: anything in it is not a finite decimal number, or it is empty.
    """
    if _SCORES.fullmatch(score_field) is None:
        raise FormatError(path, "scores (finite numbers)", shown(score_field), line_number)
    return len(score_field.split())


def append_scores(fields: list[bytes], columns: bytes) -> bytes:
    """Return the line of `fields` with `columns` added at the end of its score field.

    White space and the line end that follow the last score stay where they were.
    """
    scores = fields[SCORES]
    kept = scores.rstrip(b" \t\r\n")
    grown = kept + b" " + columns + scores[len(kept) :]
    return SEPARATOR.join([*fields[:SCORES], grown, *fields[SCORES + 1 :]])


def tokens(field: bytes) -> list[bytes]:
    """Split a field into its tokens, on space and tab alone, the line end left out."""
    text = field.rstrip(b"\r\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    return [token for token in text.split(b" ") if token]


def without_compression_suffix(path: str | Path) -> Path:
    """Return the path without `.gz`, `.bz2`, `.xz` or `.zst` at its end."""
    path = Path(path)
    return path.with_suffix("") if is_compressed(path) else path


def is_compressed(path: str | Path) -> bool:
    """Tell whether a file is to be compressed, by its name."""
    return Path(path).suffix.lower() in COMPRESSION_SUFFIXES
