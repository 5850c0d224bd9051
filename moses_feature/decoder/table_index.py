"""An index of a table on disk, to look up the lines of a few source phrases.

Beside the table stands a directory `TABLE.index` with all lines, uncompressed, and for each run of
lines with one source phrase the hash of the phrase and where the run is. Both are mapped into
memory. The index is made once; it holds the SHA-256 of the table's bytes and is made anew if the
table has changed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.source_phrases import SourcePhrases, surface_words
from moses_feature.moses.lines import LONGEST_LINE, LineReader
from moses_feature.moses.phrase_table import SEPARATOR
from moses_feature.moses.scanning import BAR, SPACE, TAB, field_end, line_end, stripped
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import locked_directory, open_output, whole_file, write_json
from moses_feature.runtime.json_files import member, read_json
from moses_feature.runtime.strings import hash_of, same

logger = logging.getLogger(__name__)

FORMAT = 1
FACTS, LINES, RUNS = "index.json", "lines", "runs.npy"
WHAT = "an index of a table"

Runs = NDArray[np.int64]


class TableIndex:
    """Looks up the lines of a table by their source phrase.

    Args:
        table: a phrase table or a reordering table. Its index is made if it is missing, or one of
            another content.

    Raises:
        MosesFeatureError: the table cannot be read, or the index not written.
    """

    def __init__(self, table: str) -> None:
        directory = Path(f"{table}.index")
        digest = _digest(Path(table))
        longest = _longest(directory, digest)
        if longest is None:
            logger.info("%s: making an index, once", table)
            longest = _make(table, directory, digest)
        self._longest = longest
        runs = np.load(directory / RUNS, mmap_mode="r")
        self._hashes, self._begins, self._ends = runs
        size = (directory / LINES).stat().st_size
        self._lines: Bytes = np.empty(0, np.uint8)
        if size:
            self._lines = np.memmap(directory / LINES, np.uint8, "r")
        self.first_line = self._lines[:LONGEST_LINE].tobytes().partition(b"\n")[0]

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


def _longest(directory: Path, digest: str) -> int | None:
    """Return the words of the longest source phrase of a good index; None if there is none."""
    path = directory / FACTS
    try:
        facts = read_json(path, WHAT)
        if (facts.get("format"), facts.get("table")) != (FORMAT, digest):
            return None
        longest: int = member(facts, "longest", int, path, WHAT)
    except (OSError, FormatError):
        return None
    return longest


def _make(table: str, directory: Path, digest: str) -> int:
    """Write the index of a table; return the words of its longest source phrase."""
    with locked_directory(directory, "writing an index"):
        (directory / FACTS).unlink(missing_ok=True)
        runs, longest = [], 0
        with LineReader(table) as reader, open_output(directory / LINES) as file:
            written = 0
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
        facts = {"format": FORMAT, "table": digest, "longest": longest}
        write_json(directory / FACTS, facts)
    return longest


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
        runs[0, odd] = hash_of_words(words)
        longest = max(longest, len(words))
    return runs, longest


def hash_of_words(words: Iterable[bytes]) -> int:
    """Return the hash of a phrase by its words."""
    found: int = _hash(np.frombuffer(b" ".join(words), dtype=np.uint8))
    return found


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
