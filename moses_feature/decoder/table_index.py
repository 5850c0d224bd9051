"""An index of a table on disk, to look up the lines of some source phrases.

Beside the table stands a directory `TABLE.index` with all lines, uncompressed, and for each run of
lines with one source phrase the hash of the phrase and where the run is. Both are mapped into
memory. The index is made once; it holds the SHA-256 of the table's bytes and is made anew if the
table has changed. Where a folder takes no files, the index is in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.source_phrases import SourcePhrases, surface_words
from moses_feature.moses.lines import BLOCK, LONGEST_LINE, LineReader
from moses_feature.moses.phrase_table import SEPARATOR
from moses_feature.moses.scanning import (
    BAR,
    NEW_LINE,
    SPACE,
    TAB,
    field_end,
    line_end,
    stripped,
)
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import INT_0, compiled
from moses_feature.runtime.environment import cache_folder
from moses_feature.runtime.errors import (
    FormatError,
    LockedError,
    MosesFeatureError,
    OutputError,
)
from moses_feature.runtime.files import locked_directory, open_output, whole_file, write_json
from moses_feature.runtime.json_files import read_json, record
from moses_feature.runtime.strings import Strings, hash_of, same

logger = logging.getLogger(__name__)

FORMAT = 1
FACTS, LINES, RUNS = "index.json", "lines", "runs.npy"
WHAT = "an index of a table"

SECONDS_BETWEEN_LOOKS = 0.5

Runs = NDArray[np.int64]


class TableLines(NamedTuple):
    """Lines of a table, in its order.

    Attributes:
        source: (lines,) numbers of their source phrases; see `SourcePhrases`.
        begin, end: (lines,) where in the content of the index each begins, and ends behind its
            line feed.
        field: (lines,) where its second field begins, behind the separator.
    """

    source: Integers
    begin: Integers
    end: Integers
    field: Integers


@dataclass(frozen=True)
class _IndexFacts:
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

    def checked(self) -> _IndexFacts:
        """Return the same facts with the right check."""
        text = f"{FORMAT} {self.table} {self.size} {self.runs} {self.longest}"
        return replace(self, check=hashlib.sha256(text.encode()).hexdigest())


class TableIndex:
    """Looks up the lines of a table by their source phrase.

    Attributes:
        content: all lines of the table.

    Args:
        table: a phrase table or a reordering table. Its index is made if it is missing, or one of
            another content.

    Raises:
        MosesFeatureError: the table cannot be read, or the index not written.
    """

    def __init__(self, table: str) -> None:
        digest = _digest(Path(table))
        self._directory = Path(f"{table}.index")
        try:
            facts = self._found_or_made(table, digest)
        except (OutputError, OSError) as error:  # in a folder that takes no files, such as a DVD
            try:
                self._directory = cache_folder() / "indexes" / digest[:32]
            except OSError:
                raise OutputError(f"{error}") from error
            logger.info("%s; the index is %s", error, self._directory)
            facts = self._found_or_made(table, digest)
        self._longest = facts.longest
        self._hashes, self._begins, self._ends = np.load(self._directory / RUNS, mmap_mode="r")
        self.content: Bytes = np.empty(0, np.uint8)
        if facts.size:
            self.content = np.asarray(np.memmap(self._directory / LINES, np.uint8, "r"))

    def _found_or_made(self, table: str, digest: str) -> _IndexFacts:
        """Return the facts of a good index; make it, or wait while another run does."""
        while (facts := self._facts(digest)) is None:
            try:
                return _make(table, self._directory, digest)
            except LockedError:
                time.sleep(SECONDS_BETWEEN_LOOKS)
        return facts

    def _facts(self, digest: str) -> _IndexFacts | None:
        """Return the facts of a good index of this table; None if there is none."""
        path = self._directory / FACTS
        try:
            facts = record(_IndexFacts, read_json(path, WHAT), path, WHAT)
            good = (
                facts.table == digest
                and facts.check == facts.checked().check
                and (self._directory / LINES).stat().st_size == facts.size
                and _digest(self._directory / RUNS) == facts.runs
            )
        except (OSError, FormatError):
            return None
        return facts if good else None

    @cached_property
    def first_line(self) -> bytes | None:
        """The first line of the table, without its end; None if it is empty."""
        head = self.content[:LONGEST_LINE].tobytes()
        return head.partition(b"\n")[0] if head else None

    def line_number(self, place: int) -> int:
        """Return the number (from 1) of the line at a place of the content."""
        newlines = (
            np.count_nonzero(self.content[begin : min(begin + BLOCK, place)] == NEW_LINE)
            for begin in range(0, place, BLOCK)
        )
        return 1 + int(sum(newlines))

    def lines(self, sources: SourcePhrases) -> TableLines:
        """Return the lines of some source phrases."""
        sources.gather(min(self._longest, sources.longest))
        strings = sources.strings
        hashes = _hashes(strings)
        first = np.searchsorted(self._hashes, hashes)
        found = np.searchsorted(self._hashes, hashes, side="right") - first
        phrase = np.repeat(np.arange(len(hashes)), found)
        run = np.arange(len(phrase)) + np.repeat(first - np.cumsum(found) + found, found)
        order = np.argsort(self._begins[run], kind="stable")
        begins, ends, phrase = self._begins[run[order]], self._ends[run[order]], phrase[order]
        fits = _fit(self.content, begins, phrase, strings)
        for odd in np.flatnonzero(~fits).tolist():  # or another phrase with the same hash
            run_of_lines = self.content[begins[odd] : ends[odd]].tobytes()
            words = surface_words(_source(run_of_lines))
            fits[odd] = b" ".join(words) == sources.phrase(phrase[odd])
        wanted = begins[fits], ends[fits], phrase[fits]
        count = _expand(self.content, *wanted, np.empty((4, 0), np.int64))
        rows = np.empty((4, count), np.int64)
        _expand(self.content, *wanted, rows)
        return TableLines(*rows)


def _digest(table: Path) -> str:
    """Return the SHA-256 of the bytes of a table, in hexadecimal."""
    with table.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make(table: str, directory: Path, digest: str) -> _IndexFacts:
    """Write the index of a table; return its facts."""
    with locked_directory(directory, "writing an index"):
        logger.info("%s: making an index, once", table)
        (directory / FACTS).unlink(missing_ok=True)
        runs, longest, written = [], 0, 0
        with LineReader(table) as reader, open_output(directory / LINES) as file:
            for block in reader.blocks():
                of_block, words = _runs_of(block, reader)
                of_block[1:] += written
                runs.append(of_block)
                longest = max(longest, words)
                file.write(block)
                written += len(block)
        joined = np.concatenate([np.empty((3, 0), np.int64), *runs], axis=1)
        order = np.argsort(joined[0], kind="stable")
        with whole_file(directory / RUNS) as temporary, temporary.open("wb") as file:
            np.save(file, joined[:, order])
        if _digest(Path(table)) != digest:
            raise MosesFeatureError(f"{table}: has changed while it was read")
        facts = _IndexFacts(digest, written, _digest(directory / RUNS), longest, "").checked()
        write_json(directory / FACTS, asdict(facts))
    return facts


def _runs_of(block: bytes, reader: LineReader) -> tuple[Runs, int]:
    """Return hash, begin and end (3, runs) of the runs of lines with one source phrase.

    Also returns the words of the longest source phrase.
    """
    array = np.frombuffer(block, dtype=np.uint8)
    rows = np.empty((block.count(b"\n") + 1, 4), dtype=np.int64)
    count, too_long = _find_runs(array, rows)
    if too_long >= 0:
        expected, number = f"lines of at most {LONGEST_LINE:,} bytes", reader.line_number
        number += 1 + block.count(b"\n", 0, too_long)
        raise FormatError(reader.path, expected, "a longer one", number)
    runs = np.ascontiguousarray(rows[:count, :3].T)
    longest = int(rows[:count, 3].max(initial=0))
    for odd in np.flatnonzero(rows[:count, 3] < 0).tolist():
        words = surface_words(_source(block[runs[1, odd] : runs[2, odd]]))
        runs[0, odd] = _hash(np.frombuffer(b" ".join(words), dtype=np.uint8))
        longest = max(longest, len(words))
    return runs, longest


def _source(lines: bytes) -> bytes:
    """Return the source field of the first of some lines."""
    return lines.partition(b"\n")[0].partition(SEPARATOR)[0]


@compiled
def _hash(text: Bytes) -> int:
    found: int = hash_of(text, INT_0, len(text))
    return found


@compiled
def _find_runs(block: Bytes, rows: Integers) -> tuple[int, int]:
    """Write hash, begin, end and words of each run of lines; words are -1 if Python must parse.

    Returns:
        The number of runs, and where a line begins that is too long, -1 if none is.
    """
    count = place = last_begin = last_end = INT_0
    while place < len(block):
        end = line_end(block, place)
        if end - place >= LONGEST_LINE:
            return count, place
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
    return count, -1


@compiled
def _hashes(strings: Strings) -> Integers:
    found = np.empty(strings.used[0], np.int64)
    for number in range(strings.used[0]):
        found[number] = hash_of(strings.pool, strings.begin[number], strings.end[number])
    return found


@compiled
def _fit(content: Bytes, begins: Integers, phrase: Integers, strings: Strings) -> NDArray[np.bool_]:
    """Return (runs,): whether runs begin with the phrases, written with single spaces."""
    fits = np.empty(len(begins), np.bool_)
    for run in range(len(begins)):
        begin = begins[run]
        end = line_end(content, begin)
        first, last = stripped(content, begin, field_end(content, begin, end))
        of = phrase[run]
        fits[run] = same(content, first, last, strings.pool, strings.begin[of], strings.end[of])
    return fits


@compiled
def _expand(
    content: Bytes, begins: Integers, ends: Integers, phrase: Integers, rows: Integers
) -> int:
    """Write a column (source, begin, end, field) for each line of some runs.

    Returns:
        The number of lines, which may be more than there is room for.
    """
    count = 0
    for run in range(len(begins)):
        place = begins[run]
        while place < ends[run]:
            end = min(line_end(content, place) + 1, ends[run])
            if count < rows.shape[1]:
                rows[0, count] = phrase[run]
                rows[1, count] = place
                rows[2, count] = end
                rows[3, count] = min(field_end(content, place, end) + 3, end)
            count += 1
            place = end
    return count
