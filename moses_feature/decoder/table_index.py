"""An index of a table on disk, to look up the lines of a few source phrases.

Beside the table stands a directory `TABLE.index` with all lines, uncompressed, and for each run of
lines with one source phrase the hash of the phrase and where the run is. Both are mapped into
memory. The index is made once; it holds the SHA-256 of the table's bytes and is made anew if the
table has changed.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.source_phrases import SourcePhrases, surface_words
from moses_feature.moses.lines import LONGEST_LINE, LineReader
from moses_feature.moses.phrase_table import SEPARATOR
from moses_feature.moses.scanning import BAR, SPACE, TAB, field_end, line_end, stripped
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.errors import FormatError, LockedError, OutputError
from moses_feature.runtime.files import locked_directory, open_output, whole_file, write_json
from moses_feature.runtime.json_files import read_json, record
from moses_feature.runtime.strings import hash_of, same

logger = logging.getLogger(__name__)

FORMAT = 1
FACTS, LINES, RUNS = "index.json", "lines", "runs.npy"
WHAT = "an index of a table"

SECONDS_BETWEEN_LOOKS = 0.5

Runs = NDArray[np.int64]


@dataclass(frozen=True)
class _Facts:
    """What is known of an index.

    Attributes:
        table: the SHA-256 of the table's bytes.
        size: the size of its lines in bytes.
        runs: the SHA-256 of the file of runs.
        longest: the words of the longest source phrase.
        check: the SHA-256 of all of these.
    """

    table: str
    size: int
    runs: str
    longest: int
    check: str

    def checked(self) -> _Facts:
        """Return the same facts with the right check."""
        text = f"{FORMAT} {self.table} {self.size} {self.runs} {self.longest}"
        return replace(self, check=hashlib.sha256(text.encode()).hexdigest())


class TableIndex:
    """Looks up the lines of a table by their source phrase.

    Attributes:
        first_line: the first line of the table, without its end; None if it is empty.

    Args:
        table: a phrase table or a reordering table. Its index is made if it is missing, or one of
            another content.

    Raises:
        MosesFeatureError: the table cannot be read, or the index not written.
    """

    def __init__(self, table: str) -> None:
        self._directory, temporary = Path(f"{table}.index"), False
        digest = _digest(Path(table))
        facts = self._facts(digest)
        while facts is None:
            try:
                facts = _make(table, self._directory, digest)
            except LockedError:
                time.sleep(SECONDS_BETWEEN_LOOKS)  # another run makes it
                facts = self._facts(digest)
            except OutputError as error:
                if temporary:
                    raise
                logger.warning("%s; a temporary index is made, for this run alone", error)
                self._directory, temporary = Path(mkdtemp(prefix="index-")), True
                finalize(self, rmtree, self._directory, ignore_errors=True)
        self._longest = facts.longest
        self._hashes, self._begins, self._ends = np.load(self._directory / RUNS, mmap_mode="r")
        self._lines: Bytes = np.empty(0, np.uint8)
        if facts.size:
            self._lines = np.memmap(self._directory / LINES, np.uint8, "r")
        else:
            logger.warning("%s: expected lines, found an empty file", table)
        head = self._lines[:LONGEST_LINE].tobytes()
        self.first_line = head.partition(b"\n")[0] if head else None

    def _facts(self, digest: str) -> _Facts | None:
        """Return the facts of a good index of this table; None if there is none."""
        path = self._directory / FACTS
        try:
            facts = record(_Facts, read_json(path, WHAT), path, WHAT)
            good = (
                facts.table == digest
                and facts.check == facts.checked().check
                and (self._directory / LINES).stat().st_size == facts.size
                and _digest(self._directory / RUNS) == facts.runs
            )
        except (OSError, FormatError):
            return None
        return facts if good else None

    def lines(self, sources: SourcePhrases) -> bytes:
        """Return the lines of some source phrases, in the order of the table.

        Lines of other phrases may be among them.
        """
        sources.gather(self._longest)
        hashes = sources.hashes()
        first = np.searchsorted(self._hashes, hashes)
        end = np.searchsorted(self._hashes, hashes, side="right")
        runs = [run for one, other in zip(first, end, strict=True) for run in range(one, other)]
        places = sorted({(int(self._begins[run]), int(self._ends[run])) for run in runs})
        return b"".join(self._lines[begin:stop].tobytes() for begin, stop in places)


def _digest(table: Path) -> str:
    """Return the SHA-256 of the bytes of a table, in hexadecimal."""
    with table.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make(table: str, directory: Path, digest: str) -> _Facts:
    """Write the index of a table; return its facts."""
    with locked_directory(directory, "writing an index"):
        logger.info("%s: making an index, once", table)
        (directory / FACTS).unlink(missing_ok=True)
        runs, longest, written = [], 0, 0
        with LineReader(table) as reader, open_output(directory / LINES) as file:
            for block in reader.blocks():
                of_block, words = _runs_of(block)
                of_block[1:] += written
                runs.append(of_block)
                longest = max(longest, words)
                file.write(block)
                written += len(block)
        joined = np.concatenate([np.empty((3, 0), np.int64), *runs], axis=1)
        order = np.argsort(joined[0], kind="stable")
        with whole_file(directory / RUNS) as temporary, temporary.open("wb") as file:
            np.save(file, joined[:, order])
        facts = _Facts(digest, written, _digest(directory / RUNS), longest, "").checked()
        write_json(directory / FACTS, asdict(facts))
    return facts


def _runs_of(block: bytes) -> tuple[Runs, int]:
    """Return hash, begin and end (3, runs) of the runs of lines with one source phrase.

    Also returns the words of the longest source phrase.
    """
    array = np.frombuffer(block, dtype=np.uint8)
    rows = np.empty((block.count(b"\n") + 1, 4), dtype=np.int64)
    count = _find_runs(array, rows)
    runs = np.ascontiguousarray(rows[:count, :3].T)
    longest = int(rows[:count, 3].max(initial=0))
    for odd in np.flatnonzero(rows[:count, 3] < 0).tolist():
        field = block[runs[1, odd] : runs[2, odd]].partition(SEPARATOR)[0]
        words = surface_words(field)
        runs[0, odd] = _hash(np.frombuffer(b" ".join(words), dtype=np.uint8))
        longest = max(longest, len(words))
    return runs, longest


@compiled
def _hash(text: Bytes) -> int:
    found: int = hash_of(text, 0, len(text))
    return found


@compiled
def _find_runs(block: Bytes, rows: Integers) -> int:
    """Write hash, begin, end and words of each run of lines; words are -1 if Python must parse.

    Returns:
        The number of runs.
    """
    count = place = last_begin = last_end = 0
    while place < len(block):
        end = line_end(block, place)
        first, last = stripped(block, place, field_end(block, place, end))
        if count and same(block, last_begin, last_end, block, first, last):
            rows[count - 1, 2] = min(end + 1, len(block))
        else:
            words = 1
            for at in range(first, last):
                words += block[at] == SPACE
                if block[at] in (TAB, BAR) or (block[at] == SPACE and block[at + 1] == SPACE):
                    words = -1
                    break
            rows[count, 0] = hash_of(block, first, last)
            rows[count, 1] = place
            rows[count, 2] = min(end + 1, len(block))
            rows[count, 3] = words
            last_begin, last_end = first, last
            count += 1
        place = end + 1
    return count
