"""The lines of text files as bytes, compressed or not, and texts with one sentence per line.

Compression is gzip, bzip2, xz or Zstandard, with one member or several.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, zip_longest
from lzma import LZMADecompressor
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from xopen import xopen

from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.errors import DataError, FormatError, MosesFeatureError, shown
from moses_feature.runtime.files import STANDARD_STREAM, Json, is_compressed

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_LINE = 1 << 20
"""The most bytes of a line, its end counted: more than sentences and scores need."""
BLOCK = 1 << 22
"""The approximate size of a block of lines, in bytes."""


class LineReader:
    r"""The lines of a text file, compressed or not, as bytes with their line ends.

    Only a line feed ends a line. The compression is recognised by content, else by suffix; `-`
    is the standard input. `line_number` is that of the last line read (1-based), `digest()` the
    SHA-256 of the uncompressed lines read so far, `fraction()` the share of the file's bytes
    consumed, `compressed` whether the content is compressed.

    Raises:
        DataError: while lines are read, the file is damaged or ends too early.
        MosesFeatureError: the file cannot be opened, or the device fails while it is read.
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
        except FormatError:
            self._raw.close()
            raise
        except Exception as error:
            self._raw.close()
            raise MosesFeatureError(f"{self.path}: cannot be read: {error}") from error

    def _open_raw(self) -> io.BufferedReader:
        if self.path == STANDARD_STREAM:
            if sys.stdin is None or sys.stdin.closed:
                raise MosesFeatureError("the standard input is closed, or has been read already")
            return cast(io.BufferedReader, sys.stdin.buffer)
        try:
            if Path(self.path).is_dir():
                raise MosesFeatureError(f"{self.path}: expected a file, found a directory")
            if is_compressed(self.path) and Path(self.path).stat().st_size == 0:
                raise FormatError(self.path, f"a {Path(self.path).suffix} file", "an empty file")
            return Path(self.path).open("rb")
        except OSError as error:
            raise MosesFeatureError(f"{self.path}: {error.strerror}") from error
        except ValueError as error:  # a NUL in the name
            raise MosesFeatureError(f"{self.path!r}: {error}") from error

    def _decompressed(self) -> BinaryIO:
        start = self._raw.peek(6)
        for magic, decompressor in _MEMBERS_TO_CHECK.items():
            if start.startswith(magic):
                self.compressed = True
                members: io.RawIOBase = _Members(self._raw, decompressor)
                return io.BufferedReader(members)
        known = next((form for magic, form in _MAGIC.items() if start.startswith(magic)), None)
        self.compressed = known is not None
        if known is None and start and is_compressed(self.path):
            expected = f"a {Path(self.path).suffix} file, by its name"
            raise FormatError(self.path, expected, f"one that begins with {shown(start[:6])}")
        lines: BinaryIO = xopen(self._raw, "rb", format=known, threads=0)
        return lines

    def __enter__(self) -> LineReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        if self.path != STANDARD_STREAM:
            self._raw.close()

    def __iter__(self) -> Iterator[bytes]:
        while line := self._ahead or self._read_line():
            self._ahead = b""
            self.line_number += 1
            self._hash.update(line)
            yield line

    def blocks(self) -> Iterator[bytes]:
        """Yield blocks of whole lines instead of single ones, and without a digest.

        While a block is processed, `line_number` is that of the line before it.
        """
        left = b""
        while content := self._read(BLOCK):
            content = left + content
            end = content.rfind(b"\n") + 1
            block, left = content[:end], content[end:]
            if block:
                self._check_nul(block)
                yield block
                self.line_number += lines_in(block)
            self._check_length(left)
        if left:
            self._check_nul(left)
            yield left
            self.line_number += 1

    def _read(self, size: int) -> bytes:
        try:
            return self._lines.read(size)
        except Exception as error:  # each decompressor has errors of its own
            raise self._failed(error) from error

    def _check_length(self, line: bytes) -> None:
        """Check the length of the line after the last one read."""
        if len(line) > LONGEST_LINE:
            expected = f"lines of at most {LONGEST_LINE:,} bytes"
            raise FormatError(self.path, expected, "a longer one", self.line_number + 1)

    def _check_nul(self, lines: bytes) -> None:
        """Check that lines after the last one read are text."""
        if b"\0" in lines:
            number = self.line_number + 1 + lines_in(lines[: lines.index(b"\0")])
            raise FormatError(self.path, "text", "a NUL byte", number)

    def peek(self) -> bytes:
        """Return the line after the last one read, empty at the end of the file."""
        self._ahead = self._ahead or self._read_line()
        return self._ahead

    def _read_line(self) -> bytes:
        try:
            line = self._lines.readline(LONGEST_LINE + 1)
        except Exception as error:  # each decompressor has errors of its own
            raise self._failed(error) from error
        self._check_length(line)
        self._check_nul(line)
        return line

    def _failed(self, error: Exception) -> MosesFeatureError:
        where = f"{self.path} after line {self.line_number}"
        if isinstance(error, OSError) and error.errno is not None:  # the device, not the data
            return MosesFeatureError(f"{where}: cannot be read: {error.strerror}")
        found = f"a damaged or truncated file ({error})"
        return DataError(f"{where}: expected more data, found {found}")

    def provenance(self, role: str) -> Json:
        """Return the provenance of the file as JSON for a model's config."""
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
        """Return the share of the file read so far, 0 to 1, or None for a stream."""
        return self._raw.tell() / self._size if self._size else None


def lines_in(block: bytes) -> int:
    """Return the number of line ends in a block."""
    return int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")))


_MEMBERS_TO_CHECK: dict[bytes, Callable[[], bz2.BZ2Decompressor | LZMADecompressor]] = {
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": LZMADecompressor,
}


_MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}


class _Members(io.RawIOBase):
    """Decompresses bzip2 or xz members one after the other.

    The standard library takes a damaged second member for the end of the file, so the rest of a
    table would be lost silently.
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
                rest = self._member.unused_data or self._unused
                self._unused = rest or self._raw.read(io.DEFAULT_BUFFER_SIZE)
                if not self._unused:
                    return 0
                if isinstance(self._member, LZMADecompressor):  # padding between streams
                    self._unused = self._unused.lstrip(b"\0")
                if not self._unused:
                    continue
                self._member = self._make()
            elif self._member.needs_input and not self._unused:
                self._unused = self._raw.read(io.DEFAULT_BUFFER_SIZE)
                if not self._unused:
                    raise EOFError("compressed data end in the middle of a member")
            content = self._member.decompress(self._unused, len(buffer))
            self._unused = b""
        buffer[: len(content)] = content
        return len(content)


Sentence = tuple[bytes, ...]
Text = tuple[Sentence, ...]


def digest_of(path: str | Path) -> str:
    """Return the SHA-256 of the lines of a file."""
    with LineReader(path) as reader:
        for _ in reader:
            pass
        return reader.digest()


def read_text(path: str | Path) -> tuple[Text, str]:
    """Return the sentences of a text as tokens, and the SHA-256 of its lines."""
    with LineReader(path) as reader:
        text = tuple(tuple(tokens(line)) for line in reader)
        return text, reader.digest()


def read_documents(path: str | Path, lines: int) -> tuple[list[bytes], Json]:
    """Return the name of the document of each line of a text, and the provenance of the file.

    Raises:
        FormatError: another number of lines.
    """
    with LineReader(path) as reader:
        names = [line.strip() for line in reader]
        if len(names) != lines:
            raise FormatError(path, f"{lines:,} lines, as the text has", f"{len(names):,}")
        return names, reader.provenance("documents")


def parallel_lines(readers: Sequence[LineReader], of: str) -> Iterator[tuple[bytes, ...]]:
    """Yield the parallel lines of several files.

    Args:
        readers: the readers of the files.
        of: what the files are, for the message.

    Raises:
        FormatError: one file ends before another.
    """
    for lines in zip_longest(*readers):
        if None in lines:
            short = readers[lines.index(None)]
            longer = next(r for r, line in zip(readers, lines, strict=True) if line is not None)
            expected, found = f"as many lines in {of}", f"the end of {short.path}"
            raise FormatError(longer.path, expected, found, longer.line_number)
        yield lines


def read_parallel(paths: Sequence[str | Path]) -> tuple[list[Text], list[str]]:
    """Return parallel texts, and the SHA-256 of each.

    Raises:
        DataError: a text has another number of lines than the first, or no word.
    """
    read = [read_text(path) for path in paths]
    texts = [text for text, _ in read]
    for path, text in zip(paths, texts, strict=True):
        if len(text) != len(texts[0]):
            raise DataError(
                f"{path}: expected {len(texts[0])} lines as in {paths[0]}, found {len(text)}"
            )
        if not any(text):
            raise DataError(f"{path}: expected sentences, found no word")
    return texts, [digest for _, digest in read]


def sentences_together(count: int) -> Iterator[list[list[bytes]]]:
    """Yield the tokenised sentences of the standard input, so many at a time."""
    with LineReader(STANDARD_STREAM) as reader:
        sentences = (tokens(line) for line in reader)
        while some := list(islice(sentences, count)):
            yield some
