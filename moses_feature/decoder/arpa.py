"""ARPA files as the hash tables of KenLM's binary files.

Follows KenLM's `lm/read_arpa.cc` and `lm/search_hashed.cc`, so that scores and states are the same
to the last bit: which n-grams begin or end longer ones is marked in signs, and an n-gram whose end
was pruned (as SRILM does) gets a blank for it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.ngram_file import (
    FIXED,
    HEADER,
    HIGHEST_ORDER,
    MAGIC,
    PROBING,
    SANE,
    BinaryLayout,
    ModelWords,
    map_binary,
)
from moses_feature.decoder.ngram_tables import (
    ENTRIES,
    OFFSET,
    SIZE,
    WORD_SIZE,
    NgramTables,
    combined,
    hashes_of,
    murmur,
    place_in,
)
from moses_feature.moses.lines import LineReader
from moses_feature.moses.scanning import CARRIAGE_RETURN, MINUS, SPACE, TAB, line_end, read_number
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled, helper
from moses_feature.runtime.errors import FormatError, MosesFeatureError, OutputError, shown
from moses_feature.runtime.files import whole_file

logger = logging.getLogger(__name__)

U, F = np.uint64, np.float32
MULTIPLIER = 1.5
"""Places of a hash table for each n-gram, as KenLM's default."""
MOST_NGRAMS = 1 << 40
UNKNOWN = -100.0
"""log10 p of unknown words in a file without <unk>."""
FINE, NO_NUMBER, POSITIVE, NO_WORD, NO_END, NO_CONTEXT, FULL = range(7)
EXPECTED = {
    NO_NUMBER: "a number, the log10 of a probability",
    POSITIVE: "a log10 of a probability, 0 or less",
    NO_WORD: "words that are 1-grams",
    NO_END: "a backoff weight and the end of the line",
    NO_CONTEXT: "an n-gram whose first words are an n-gram, too",
    FULL: "fewer n-grams, or fewer whose last words are none",
}


def read_arpa(path: str, cache: Path | None = None) -> tuple[NgramTables, ModelWords]:
    """Read an ARPA file, compressed or not.

    Args:
        path: the file.
        cache: a folder in which the tables are kept; None for no folder.

    Raises:
        MosesFeatureError: the file cannot be read.
        FormatError: it is no ARPA file.
    """
    kept = None
    if cache is not None:
        kept = cache / f"{_identity(Path(path))}.ngrams"
        if kept.is_file():
            with suppress(MosesFeatureError):  # a damaged file is made again
                return map_binary(kept)
    content = _ArpaBuilder(path).content
    if kept is not None:
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(kept) as temporary:
                content.tofile(temporary)
            return map_binary(kept)
        except (OSError, OutputError) as error:
            logger.warning("%s: its tables are not kept: %s", path, error)
    content.flags.writeable = False  # as a file that is mapped: one type for compiled code
    layout = BinaryLayout.of(content[: 2 * HEADER].tobytes(), content, content.nbytes)
    return layout.tables(), layout.words()


def _identity(path: Path) -> str:
    """Return a name for the content of a file: of its place, size and time."""
    status = path.stat()
    facts = f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"
    return hashlib.sha256(facts.encode()).hexdigest()[:32]


class _ArpaBuilder:
    """The content of a binary file, made of an ARPA file."""

    def __init__(self, path: str) -> None:
        self._path = path
        with LineReader(path) as reader:
            self._blocks = reader.blocks()
            self._reader = reader
            self._block, self._place, self._line = b"", 0, 0
            counts = self._counts()
            head = SANE.pack(0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
            head = MAGIC.ljust(56, b"\0") + head
            head += FIXED.pack(len(counts), MULTIPLIER, PROBING, 0, 0)
            head += np.array(counts, np.uint64).tobytes()
            head = head.ljust(-(-len(head) // 8) * 8, b"\0")
            size = BinaryLayout.size(counts, PROBING, MULTIPLIER, len(head))
            self.content: NDArray[np.uint32] = np.zeros(-(-size // 4), dtype=np.uint32)
            self.content[: len(head) // 4] = np.frombuffer(head, np.uint32)
            layout = BinaryLayout.of(head, self.content, size)
            tables, words = layout.tables(), layout.words()
            where = np.array([words.begin, words.places, 1], dtype=np.int64)
            used = np.zeros(len(counts), dtype=np.int64)
            self._set_unigram(tables, 0, UNKNOWN, 0.0)
            for order, count in enumerate(counts, 1):
                self._read_ngrams(order, count, tables, where, used)
            self._read_end()
            self.content[words.begin - 1] = where[2]  # the number of words, <unk> counted

    @staticmethod
    def _set_unigram(tables: NgramTables, word: int, prob: float, backoff: float) -> None:
        at = int(tables.layout[0, OFFSET]) + 2 * word
        tables.content[at : at + 2] = np.array([prob, backoff], np.float32).view(np.uint32)

    def _lines(self) -> Iterator[bytes]:
        """Yield lines, without their ends and white space around them."""
        while True:
            while self._place < len(self._block):
                end = self._block.find(b"\n", self._place)
                end = len(self._block) if end < 0 else end
                line = self._block[self._place : end].strip(b" \t\r")
                self._place = end + 1
                self._line += 1
                yield line
            self._block, self._place = next(self._blocks, b""), 0
            if not self._block:
                return

    def _next_line(self, expected: str) -> bytes:
        """Return the next line that is not blank."""
        line = next((line for line in self._lines() if line), None)
        if line is None:
            raise FormatError(self._path, expected, "the end of the file", self._line)
        return line

    def _counts(self) -> list[int]:
        r"""Read the head, from \data\ to the blank line behind the counts."""
        line = self._next_line("\\data\\")
        while line.startswith(b"#"):
            line = self._next_line("\\data\\")
        if line != b"\\data\\":
            raise FormatError(self._path, "\\data\\, an ARPA file", shown(line), self._line)
        counts: list[int] = []
        for line in self._lines():
            if not line:
                break
            order, _, count = line.removeprefix(b"ngram ").partition(b"=")
            expected = f"ngram {len(counts) + 1}=…"
            if order.strip() != b"%d" % (len(counts) + 1) or not count.strip().isdigit():
                raise FormatError(self._path, expected, shown(line), self._line)
            if int(count) > MOST_NGRAMS:
                raise FormatError(self._path, f"{MOST_NGRAMS} n-grams", shown(line), self._line)
            counts.append(int(count))
        if not 2 <= len(counts) <= HIGHEST_ORDER:
            found = f"a model of order {len(counts)}"
            raise FormatError(self._path, f"order 2 to {HIGHEST_ORDER}", found, self._line)
        return counts

    def _read_ngrams(
        self, order: int, count: int, tables: NgramTables, words: Integers, used: Integers
    ) -> None:
        expected = f"\\{order}-grams:"
        if (line := self._next_line(expected)) != expected.encode():
            raise FormatError(self._path, expected, shown(line), self._line)
        left = count
        while left:
            if self._place >= len(self._block):
                self._block, self._place = next(self._blocks, b""), 0
                if not self._block:
                    found = f"the end of the file after {count - left:,}"
                    raise FormatError(self._path, f"{count:,} {order}-grams", found, self._line)
            block = np.frombuffer(self._block, dtype=np.uint8)
            done, self._place, fault = _add_ngrams(
                block, self._place, left, order, tables, words, used
            )
            left -= done
            self._line += done
            if fault != FINE:
                line = self._block[self._place :].partition(b"\n")[0]
                raise FormatError(self._path, EXPECTED[fault], shown(line), self._line + 1)

    def _read_end(self) -> None:
        if (line := self._next_line("\\end\\")) != b"\\end\\":
            raise FormatError(self._path, "\\end\\", shown(line), self._line)
        if line := next((line for line in self._lines() if line), b""):
            raise FormatError(self._path, "nothing behind \\end\\", shown(line), self._line)


KEY_OF_UNKNOWN, KEY_OF_CAPITALS = hashes_of(
    np.frombuffer(b"<unk><UNK>", np.uint8), np.array([0, 5, 10])
)


@helper
def _add_key(tables: NgramTables, begin: int, places: int, width: int, key: int) -> int:
    """Return where the entry of a key is in a hash table, a new one if it has none; -1 if full."""
    content = tables.content
    place = np.int64(U(key) % U(places))
    for _ in range(places):
        at = begin + place * width
        found = U(content[at]) | U(content[at + 1]) << U(32)
        if found == U(key):
            return at
        if found == U(0):
            content[at] = np.uint32(U(key) & U(0xFFFFFFFF))
            content[at + 1] = np.uint32(U(key) >> U(32))
            return at
        place += 1
        if place == places:
            place = np.int64(0)
    return -1


@helper
def _set_float(content: NDArray[np.uint32], at: int, value: float) -> None:
    content[at] = F(value).view(np.uint32)


@helper
def _float_at(content: NDArray[np.uint32], at: int) -> np.float32:
    return np.uint32(content[at]).view(F)  # type: ignore[no-any-return]


@helper
def _mark_extension(content: NDArray[np.uint32], at: int) -> None:
    """Make a backoff weight of -0.0 one of 0.0: a longer n-gram begins with this one."""
    if content[at] == np.uint32(0x80000000):
        content[at] = np.uint32(0)


@helper
def _behind_blanks(block: Bytes, place: int, end: int) -> int:
    while place < end and block[place] in (SPACE, TAB):
        place += 1
    return place


@helper
def _signed_number(block: Bytes, place: int, end: int) -> tuple[float, int, bool]:
    """Return a number, where it ends, and whether it is one."""
    negative = place < end and block[place] == MINUS
    value, behind = read_number(block, place + (1 if negative else 0), end)
    return (-value if negative else value), behind, value >= 0.0


@helper
def _read_word(
    block: Bytes, place: int, end: int, is_new: bool, tables: NgramTables, words: Integers
) -> tuple[int, int]:
    """Return the id of the word at a place, -1 for none, and where it ends.

    Args:
        block: lines.
        place: where the word begins.
        end: where its line ends.
        is_new: whether it is a 1-gram, which gets an id.
        tables: the tables, with that of the words.
        words: where the table of words begins, its places, and the next id.
    """
    behind = place
    while behind < end and block[behind] not in (SPACE, TAB):
        behind += 1
    if behind == place:
        return -1, behind
    key = murmur(block, place, behind)
    if key in (KEY_OF_UNKNOWN, KEY_OF_CAPITALS):
        return 0, behind
    begin, places = words[0], words[1]
    if not is_new:
        at = place_in(tables.content, begin, places, WORD_SIZE, key)
        return (np.int64(tables.content[at + 2]) if at >= 0 else -1), behind
    if words[2] >= places:
        return -1, behind
    at = _add_key(tables, begin, places, WORD_SIZE, key)
    if tables.content[at + 2] == 0:
        tables.content[at + 2] = np.uint32(words[2])
        words[2] += 1
    return np.int64(tables.content[at + 2]), behind


@helper(inline=False)
def _read_backoff(block: Bytes, place: int, end: int) -> tuple[float, bool]:
    """Return the backoff weight at the end of a line, and whether the line is good."""
    at = _behind_blanks(block, place, end)
    if at == end:
        return -0.0, True
    backoff, at, good = _signed_number(block, at, end)
    good = good and _behind_blanks(block, at, end) == end
    return (-0.0 if F(backoff) == F(0.0) else backoff), good


@compiled
def _add_ngrams(
    block: Bytes,
    place: int,
    most: int,
    order: int,
    tables: NgramTables,
    words: Integers,
    used: Integers,
) -> tuple[int, int, int]:
    """Add the n-grams of a block of lines.

    Args:
        block: lines.
        place: where the first of them begins.
        most: the number of n-grams that are still to come.
        order: of the n-grams.
        tables: the tables to fill.
        words: where the table of words begins, its places, and the next id.
        used: (orders,) entries in use of each table.

    Returns:
        How many were added, where the next line begins, and what is wrong with it.
    """
    ids, keys = np.zeros(order, np.int64), np.zeros(order, np.uint64)
    ends = np.zeros(order, np.int64)
    done = 0
    while place < len(block) and done < most:
        end = line_end(block, place)
        last = end - 1 if end > place and block[end - 1] == CARRIAGE_RETURN else end
        prob, at, good = _signed_number(block, _behind_blanks(block, place, last), last)
        if not good:
            return done, place, NO_NUMBER
        if prob > 0.0:
            return done, place, POSITIVE
        for n in range(order):
            word, at = _read_word(
                block, _behind_blanks(block, at, last), last, order == 1, tables, words
            )
            if word < 0:
                return done, place, NO_WORD
            ids[order - 1 - n] = word
        backoff, good = _read_backoff(block, at, last)
        if not good:
            return done, place, NO_END
        fault = _add_ngram(tables, ids, keys, ends, used, prob, backoff)
        if fault != FINE:
            return done, place, fault
        done += 1
        place = min(end + 1, len(block))
    return done, place, FINE


@helper
def _add_ngram(
    tables: NgramTables,
    ids: Integers,
    keys: NDArray[np.uint64],
    ends: Integers,
    used: Integers,
    prob: float,
    backoff: float,
) -> int:
    """Add an n-gram, given by the ids of its words, the last one first; return what is wrong."""
    content, layout = tables.content, tables.layout
    order, longest = len(ids), len(ids) == len(layout)
    if order == 1:
        at = layout[0, OFFSET] + 2 * ids[0]
        _set_float(content, at, prob)
        _set_float(content, at + 1, backoff)
        return FINE
    keys[0] = U(ids[0])
    for n in range(1, order):
        keys[n] = combined(keys[n - 1], ids[n])
    of_order = layout[order - 1]
    used[order - 1] += 1
    if used[order - 1] >= of_order[ENTRIES]:
        return FULL
    at = _add_key(tables, of_order[OFFSET], of_order[ENTRIES], of_order[SIZE], keys[order - 1])
    _set_float(content, at + 2, prob)
    content[at + 2] |= np.uint32(0x80000000)  # no longer n-gram ends in this one, as far as known
    if not longest:
        _set_float(content, at + 3, backoff)
    count = _find_ends(tables, ids, keys, ends, used)
    if count == 0:
        return FULL
    _fill_blanks(tables, ids, ends, count)
    return _mark_beginning(tables, ids)


@helper
def _find_ends(
    tables: NgramTables,
    ids: Integers,
    keys: NDArray[np.uint64],
    ends: Integers,
    used: Integers,
) -> int:
    """Find the longest n-gram that a new one ends in; make blanks for missing ones between them.

    Write where their probabilities are, the longest first; return how many there are, 0 if a table
    is full. Normally there is one.
    """
    content, layout = tables.content, tables.layout
    count = 0
    for n in range(len(ids) - 2, 0, -1):
        shorter = layout[n]
        at = place_in(content, shorter[OFFSET], shorter[ENTRIES], shorter[SIZE], keys[n])
        is_there = at >= 0
        if not is_there:
            used[n] += 1
            if used[n] >= shorter[ENTRIES]:
                return 0
            at = _add_key(tables, shorter[OFFSET], shorter[ENTRIES], shorter[SIZE], keys[n])
            content[at + 3] = np.uint32(0x80000000)  # a backoff weight of -0.0
        ends[count] = at + 2
        count += 1
        if is_there:
            return count
    ends[count] = layout[0, OFFSET] + 2 * ids[0]
    return count + 1


@helper(inline=False)
def _place_of_context(tables: NgramTables, ids: Integers, words: int) -> int:
    """Return where the backoff weight of the words before the last one is, so many; -1 for none."""
    if words == 1:
        return tables.layout[0, OFFSET] + 2 * ids[1] + 1
    key = U(ids[1])
    for n in range(2, words + 1):
        key = combined(key, ids[n])
    of_order = tables.layout[words - 1]
    at = place_in(tables.content, of_order[OFFSET], of_order[ENTRIES], of_order[SIZE], key)
    return at + 3 if at >= 0 else -1


@helper
def _fill_blanks(tables: NgramTables, ids: Integers, ends: Integers, count: int) -> None:
    """Give blanks the probability of backing off; mark that longer n-grams end in all of them."""
    content = tables.content
    words = len(ids) - count  # of the longest n-gram that was there
    prob = -abs(_float_at(content, ends[count - 1]))
    for blank in range(count - 2, -1, -1):
        weight = _place_of_context(tables, ids, words)
        if weight >= 0:
            _mark_extension(content, weight)
            prob += _float_at(content, weight)
        _set_float(content, ends[blank], prob)
        words += 1
    for place in range(count):
        content[ends[place]] &= np.uint32(0x7FFFFFFF)


@helper
def _mark_beginning(tables: NgramTables, ids: Integers) -> int:
    """Mark that a longer n-gram begins with the words before the last; return what is wrong."""
    weight = _place_of_context(tables, ids, len(ids) - 1)
    if weight < 0:
        return NO_CONTEXT
    _mark_extension(tables.content, weight)
    return FINE
