"""Write a table in independent compressed parts, so that a killed run can be resumed."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from xopen import xopen

from moses_feature.runtime.errors import FormatError, OutputError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, is_compressed, target_of, write_whole
from moses_feature.runtime.json_files import difference, member, parse_json

COMPRESSION = 6
JOURNAL = {"bytes": int, "sha256": str, "progress": dict[str, Any], "identity": dict[str, Any]}


class TableWriter:
    """A text file, compressed by its suffix, that gets its final name only when it is complete.

    Each `write` appends an independently compressed part (a gzip member; bzip2, xz and Zstandard
    files can be joined in the same way). What a crash leaves after each step:

    1. Append the part to `NAME.partial`: the journal does not count it, so `resume` cuts it off.
    2. fsync `NAME.partial`: the same. The journal never counts bytes that are not on disk.
    3. Replace `NAME.journal` (size, SHA-256, progress; by renaming, so that it is the old or the
       new one): `resume` continues behind the part. The journal itself is not synced: after a loss
       of power it may be older, and a damaged one is detected by its checksum.
    4. `finish` renames `NAME.partial` to `NAME`: the file is complete, and `resume`, which still
       finds the journal, checks it and takes it back as `NAME.partial`.
    5. `finish` removes the journal: nothing is left to resume.

    A file of that name from before is replaced only in step 4. A crash before the first journal
    leaves a `NAME.partial` that `start` overwrites. The file of a resumed run has the same bytes as
    that of an uninterrupted one. `NAME.partial` is locked while it is written. For `-`, parts go to
    the standard output uncompressed, and nothing is recorded.
    """

    def __init__(self, path: str) -> None:
        self._to_stdout = path == STANDARD_STREAM
        self._path = target_of(Path(path))
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()

    @property
    def _partial(self) -> Path:
        return self._path.with_name(self._path.name + ".partial")

    @property
    def _journal(self) -> Path:
        return self._path.with_name(self._path.name + ".journal")

    def files(self) -> list[Path]:
        """Return the names of all files that are written; empty for the standard output."""
        return [] if self._to_stdout else [self._path, self._partial, self._journal]

    def refuse_unfinished(self) -> None:
        """Check that no unfinished run would be overwritten.

        Raises:
            UsageError: the journal of an unfinished run exists.
        """
        if not self._to_stdout and self._journal.exists():
            raise UsageError(
                f"{self._partial} is what an unfinished run left: --resume continues it, "
                f"or remove {self._journal}"
            )

    def refuse_whole(self) -> None:
        """Check that there is something to resume, or nothing yet.

        Raises:
            UsageError: the file is complete.
        """
        if not self._to_stdout and not self._journal.exists() and self._path.exists():
            raise UsageError(f"{self._path} is whole: nothing to resume")

    def start(self) -> None:
        """Begin a new file.

        Raises:
            UsageError: the journal of an unfinished run exists.
            OutputError: the file cannot be written, or another run is writing it.
        """
        if self._to_stdout:
            if sys.stdout is None:
                raise OutputError("the standard output is closed")
            self._file = sys.stdout.buffer
            return
        self.refuse_unfinished()
        self._open()
        self._truncate(0)

    def resume(self, identity: Json) -> Json:
        """Continue an unfinished run, and return its progress; {} if there was none.

        Raises:
            FormatError: it was another run, or its files are damaged.
            UsageError: the file is complete.
            OutputError: the file cannot be written, or another run is writing it.
        """
        if self._to_stdout:
            raise UsageError("writing to the standard output cannot be resumed")
        if not self._journal.exists():
            self.refuse_whole()
            self.start()
            return {}
        journal = self._read_journal()
        if other := difference(identity, journal["identity"]):
            expected = f"a run with {other.key} {other.expected}"
            raise FormatError(self._journal, expected, other.found)
        if not self._partial.exists() and self._path.exists():
            with self._path.open("rb") as file:  # killed between the two steps of `finish`?
                self._check_content(file, self._path, journal)
            self._path.replace(self._partial)
        # Bytes behind the last recorded part are part of an unrecorded one: it is written again.
        self._hash = self._check_content(self._open(), self._partial, journal)
        self._truncate(journal["bytes"])
        progress: Json = journal["progress"]
        return progress

    def _read_journal(self) -> Json:
        what = "a journal"
        try:
            digest, _, text = self._journal.read_text().partition("\n")
        except (OSError, UnicodeError) as error:
            raise FormatError(self._journal, what, f"a damaged file ({error})") from error
        if digest != hashlib.sha256(text.encode()).hexdigest():
            raise FormatError(self._journal, what, "a damaged file (its checksum is wrong)")
        journal = parse_json(text, self._journal, what)
        for name, kind in JOURNAL.items():
            member(journal, name, kind, self._journal, what)
        if journal["bytes"] < 0:
            raise FormatError(self._journal, f"{what}: a good 'bytes'", f"{journal['bytes']}")
        return journal

    @staticmethod
    def _check_content(file: BinaryIO, path: Path, journal: Json) -> Any:
        """Check that a file begins with the journal's bytes; return their hash."""
        hashed = hashlib.sha256()
        left = journal["bytes"]
        while left and (block := file.read(min(left, 1 << 20))):
            hashed.update(block)
            left -= len(block)
        if hashed.hexdigest() != journal["sha256"]:
            expected = f"the {journal['bytes']} bytes that the unfinished run wrote"
            raise FormatError(path, expected, "others")
        return hashed

    def _open(self) -> BinaryIO:
        """Open the partial file, and lock it as long as it is open."""
        try:
            self._file = file = self._partial.open("r+b" if self._partial.exists() else "w+b")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not (
                self._partial.exists()
                and os.path.samestat(os.fstat(file.fileno()), self._partial.stat())
            ):  # another run has finished it in the meantime
                raise BlockingIOError  # noqa: TRY301
        except BlockingIOError:
            self.close()
            raise OutputError(f"{self._partial}: another run is writing it") from None
        except OSError as error:
            raise OutputError(f"{self._partial}: {error.strerror}") from error
        return file

    def _truncate(self, size: int) -> None:
        assert self._file is not None  # noqa: S101
        self._file.seek(size)
        self._file.truncate()

    def write(self, content: bytes, identity: Json, progress: Json) -> None:
        """Append a part (the result of `compressed`), and record the progress.

        Raises:
            OutputError: the disk is full, or the file cannot be written for another reason.
        """
        assert self._file is not None, "start or resume first"  # noqa: S101
        if self._to_stdout:
            self._file.write(content)
            self._file.flush()
            return
        try:
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._hash.update(content)
            journal = {
                "bytes": self._file.tell(),
                "sha256": self._hash.hexdigest(),
                "progress": progress,
                "identity": identity,
            }
            text = json.dumps(journal)
            digest = hashlib.sha256(text.encode()).hexdigest()
            write_whole(self._journal, f"{digest}\n{text}".encode())
        except (OSError, OutputError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise OutputError(
                f"{self._path}: cannot be written: {reason}; what is done is in "
                f"{self._partial}, --resume continues it"
            ) from error

    def digest(self) -> str:
        """Return the SHA-256 of the bytes written, in hexadecimal."""
        return self._hash.hexdigest()

    def finish(self) -> None:
        """Give the file its final name, and remove the journal."""
        if not self._to_stdout:
            self._partial.replace(self._path)
            self._journal.unlink(missing_ok=True)
        self.close()

    def discard(self) -> None:
        """Remove the partial file and the journal."""
        if not self._to_stdout:
            self._partial.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the unfinished file, and leave it for `resume`."""
        if self._file is not None and not self._to_stdout:
            with suppress(OSError):  # closing fails again on a full disk
                self._file.close()
        self._file = None


def compressed(content: bytes, path: str) -> bytes:
    """Return `content` as an independently compressed part; the suffix of `path` says how."""
    if path == STANDARD_STREAM or not is_compressed(path):
        return content
    suffix = Path(path).suffix.lower()
    level = COMPRESSION if suffix == ".gz" else None
    buffer = io.BytesIO()
    with xopen(buffer, "wb", format=suffix[1:], compresslevel=level, threads=0) as part:
        part.write(content)
    return buffer.getvalue()
