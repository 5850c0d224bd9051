"""Write a table in independent compressed parts, so that a killed run can go on."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from xopen import xopen

from moses_feature.errors import FormatError, OutputError, UsageError
from moses_feature.files import write_whole
from moses_feature.phrase_table import COMPRESSION_SUFFIXES, STANDARD_STREAM

GZIP_LEVEL = 6


class TableWriter:
    """A text file, compressed by its suffix, that takes its final name only when it is whole.

    Every `write` adds an independently compressed part (a gzip member; bzip2, xz and Zstandard
    files may be joined in the same way) to `NAME.partial`, and notes in `NAME.journal` what has
    been written. A run that was killed goes on from the journal; the bytes are the same as those
    of a run that was not. For `-`, parts go to the standard output uncompressed, and nothing is
    noted.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._to_stdout = path == STANDARD_STREAM
        self._partial = self._path.with_name(self._path.name + ".partial")
        self._journal = self._path.with_name(self._path.name + ".journal")
        self._file: BinaryIO | None = None

    def start(self) -> None:
        """Begin a new file.

        Raises:
            UsageError: an unfinished run left its part of the file.
            OutputError: the file cannot be written.
        """
        if self._to_stdout:
            self._file = sys.stdout.buffer
            return
        if self._journal.exists():
            raise UsageError(
                f"{self._partial} is what an unfinished run left: --resume goes on with it, "
                f"or remove {self._journal}"
            )
        self._open("wb")

    def resume(self, identity: dict[str, Any]) -> dict[str, Any]:
        """Go on with what an unfinished run left, and return its progress; {} where none did.

        Raises:
            FormatError: it was another run.
        """
        if self._to_stdout:
            raise UsageError("writing to the standard output cannot be resumed")
        if not self._journal.exists():
            self._open("wb")
            return {}
        try:
            journal = json.loads(self._journal.read_bytes())
            for key, value in json.loads(json.dumps(identity)).items():
                if journal["identity"].get(key) != value:
                    found = f"{journal['identity'].get(key)}"
                    raise FormatError(self._journal, f"a run with {key} {value}", found)
            self._open("r+b")
            assert self._file is not None  # noqa: S101 (opened on the line above)
            self._file.truncate(journal["bytes"])
            self._file.seek(journal["bytes"])
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(self._journal, "a journal", f"a damaged file ({error})") from error
        progress: dict[str, Any] = journal["progress"]
        return progress

    def _open(self, mode: str) -> None:
        try:
            self._file = self._partial.open(mode)  # type: ignore[assignment]
        except OSError as error:
            raise OutputError(f"{self._partial}: {error.strerror}") from error

    def write(self, content: bytes, identity: dict[str, Any], progress: dict[str, Any]) -> None:
        """Add a part and note the progress that it stands for.

        Raises:
            OutputError: the disk is full, or the file cannot be written for another reason.
        """
        assert self._file is not None, "start or resume first"  # noqa: S101
        try:
            self._file.write(content if self._to_stdout else self._compressed(content))
            self._file.flush()
            if self._to_stdout:
                return
            os.fsync(self._file.fileno())
            journal = {"bytes": self._file.tell(), "progress": progress, "identity": identity}
            write_whole(self._journal, json.dumps(journal).encode())
        except OSError as error:
            raise OutputError(
                f"{self._path}: cannot be written: {error.strerror}; what is done is in "
                f"{self._partial}, --resume goes on with it"
            ) from error

    def _compressed(self, content: bytes) -> bytes:
        suffix = self._path.suffix
        if suffix not in COMPRESSION_SUFFIXES:
            return content
        level = GZIP_LEVEL if suffix == ".gz" else None
        buffer = io.BytesIO()
        with xopen(buffer, "wb", format=suffix[1:], compresslevel=level, threads=0) as part:
            part.write(content)
        return buffer.getvalue()

    def finish(self) -> None:
        """Give the file its final name."""
        self.close()
        if not self._to_stdout:
            self._partial.replace(self._path)
            self._journal.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove what has been written."""
        self.close()
        if not self._to_stdout:
            self._partial.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the unfinished file and leave it where it is."""
        if self._file is not None and not self._to_stdout:
            with suppress(OSError):  # what a full disk did not take is tried, and fails, again
                self._file.close()
        self._file = None
