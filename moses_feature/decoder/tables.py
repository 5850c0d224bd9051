"""The lines of phrase and reordering tables that some sentences can use.

They are looked up in the index of the table, and parsed by compiled code. Lines that are out of
the ordinary (factors, tabs, numbers of 17 digits) are parsed by plain Python; errors and numbers
are the same either way.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.decoder.source_phrases import SourcePhrases, surface_words
from moses_feature.decoder.system import PhraseTable, ReorderingTable
from moses_feature.decoder.table_index import TableIndex, TableLines
from moses_feature.moses.features import log_score
from moses_feature.moses.phrase_table import (
    ALIGNMENT,
    LOWEST_LOG_SCORE,
    NUMBER,
    PROPERTIES,
    SEPARATOR,
    TARGET,
    split_fields,
    tokens,
)
from moses_feature.moses.scanning import (
    BAR,
    CARRIAGE_RETURN,
    NEW_LINE,
    SPACE,
    TAB,
    field_end,
    read_number,
    stripped,
)
from moses_feature.runtime.arrays import Bytes, Floats, Integers
from moses_feature.runtime.compiled import compiled, helper
from moses_feature.runtime.errors import FormatError, shown
from moses_feature.runtime.strings import (
    Strings,
    added,
    new_strings,
    number_copied,
    slot_of,
    with_room,
)

ODD, UNKNOWN = -2, -1
"""A line that Python must parse; a target phrase without a number."""
MOST_FIELDS = 16
"""The most fields that compiled code parses, where any number of fields is allowed."""

logger = logging.getLogger(__name__)


class TargetPhrases:
    """Target phrases and words, numbered; word 0 is the end of the sentence.

    Attributes:
        phrases: target phrases, their words with one space between them.
        words: all words; `split` numbers those of the phrases.
        factors: how many each word has; of one, only the first is kept.
    """

    def __init__(self, factors: int = 1) -> None:
        self.factors = factors
        self.phrases = new_strings()
        self.words, _ = added(new_strings(), [b"</s>"])

    def phrase_of(self, field: bytes) -> bytes | None:
        """Return the phrase in a field of a table; None if a word lacks a factor."""
        words = surface_words(field) if self.factors == 1 else tokens(field)
        factors = [word.split(b"|") for word in words]
        if any(len(of) != self.factors or b"" in of for of in factors):
            return None
        return b" ".join(words)

    def number(self, phrase: bytes) -> int:
        """Return the number of a phrase; a new one if it was not seen before."""
        self.phrases, (number,) = added(self.phrases, [phrase])
        return number

    def split(self) -> tuple[Integers, Integers]:
        """Return the words of all phrases, one after the other, and where each phrase begins."""
        count, size = self.phrases.used.tolist()
        spaces = int((self.phrases.pool[:size] == SPACE).sum())
        flat = np.empty(count + spaces, dtype=np.int64)
        offsets = np.zeros(count + 1, dtype=np.int64)
        self.words = with_room(self.words, len(flat), size)
        _split(self.phrases, self.words, flat, offsets)
        return flat[: offsets[-1]], offsets


class Rows(NamedTuple):
    """Lines of a table.

    Attributes:
        source, target: (n,) numbers of their phrases; the target is `UNKNOWN` if it has no number
            or is not read.
        scores: (n, scores) natural logs.
        links: (n,) word alignments as in the table, if wanted; else empty.
    """

    source: Integers
    target: Integers
    scores: Floats
    links: NDArray[np.object_]


def read_table(
    table: PhraseTable,
    index: TableIndex,
    sources: SourcePhrases,
    targets: TargetPhrases,
    with_links: bool = False,
) -> Rows:
    """Return the phrase pairs of a table whose source phrase is wanted; number their targets.

    Args:
        table: the table.
        index: its index.
        sources: the wanted source phrases.
        targets: the target phrases; new ones get a number.
        with_links: whether to read word alignments, too.

    Raises:
        FormatError: the first line, or one of a wanted phrase, is damaged.
    """
    if index.first_line is None:
        logger.warning("%s: expected phrase pairs, found an empty file", table.path)
    else:
        split_fields(index.first_line, table.path, 1)  # whatever is wanted: it may be no table
    of_table = table.path, table.scores, index, sources, targets
    return _Reader(*of_table, new=True, with_links=with_links).rows()


def read_reordering(
    model: ReorderingTable, index: TableIndex, sources: SourcePhrases, targets: TargetPhrases
) -> Rows:
    """Return the lines of a reordering table whose phrases are wanted.

    Raises:
        FormatError: a line of a wanted phrase is damaged.
    """
    known = targets if model.on_target else None
    rows = _Reader(model.path, model.type.scores, index, sources, known).rows()
    if not model.on_target:
        return rows
    return Rows(*(part[rows.target != UNKNOWN] for part in rows))


def links_of(line: bytes) -> bytes:
    """Return the links in a line of a phrase table; empty if it has none."""
    fields = line.split(SEPARATOR, ALIGNMENT + 1)
    return fields[ALIGNMENT].strip() if len(fields) > ALIGNMENT else b""


@dataclass(frozen=True)
class _Reader:
    """Reads the lines of a table whose source phrase is wanted.

    Attributes:
        path: the table.
        scores: the number of scores of a line.
        index: its index.
        sources: the wanted phrases.
        targets: the target phrases; None if the lines have none.
        new: whether target phrases without a number get one: it is a phrase table.
        with_links: whether to read word alignments.
    """

    path: str
    scores: int
    index: TableIndex
    sources: SourcePhrases
    targets: TargetPhrases | None
    new: bool = False
    with_links: bool = False

    @property
    def _least(self) -> int:
        """The least number of fields of a line; the scores are the last of these."""
        return 2 if self.targets is None else 3

    def rows(self) -> Rows:
        """Return all wanted lines."""
        lines, content = self.index.lines(self.sources), self.index.content
        count = len(lines.source)
        target, scores = np.full(count, UNKNOWN), np.empty((count, self.scores))
        links = np.full(count, b"", dtype=object)
        known = self.targets.phrases if self.targets else new_strings()
        if self.targets and self.new:
            size = int((lines.end - lines.field).sum())
            known = self.targets.phrases = with_room(known, count, size)
        fields = self._least - 1, self._least, PROPERTIES + 1 if self.new else MOST_FIELDS
        if self.targets and self.targets.factors > 1:
            target[:] = ODD
        else:
            how = *fields, self.targets is not None, self.new, known
            _parse(content, lines, *how, target, scores)

        def text_of(row: int) -> bytes:
            return content[lines.begin[row] : lines.end[row]].tobytes()

        if self.with_links:
            links[:] = [links_of(text_of(row)) for row in range(count)]
        for row in np.flatnonzero(target == ODD).tolist():
            try:
                target[row], scores[row] = self._of_line(text_of(row), None)
            except FormatError:  # once more, with the number of the line
                self._of_line(text_of(row), self.index.line_number(int(lines.begin[row])))
        return Rows(lines.source, target, scores, links)

    def _of_line(self, line: bytes, number: int | None) -> tuple[int, list[float]]:
        """Return the target and the scores of a line that compiled code cannot parse."""
        if self.new:
            fields = split_fields(line, self.path, number)
        elif len(fields := line.split(SEPARATOR)) < self._least:
            expected = f"{self._least} fields separated by |||"
            raise FormatError(self.path, expected, shown(line), number)
        scores = _log_scores(fields[self._least - 1], self.scores, self.path, number)
        if self.targets is None:
            return UNKNOWN, scores
        phrase = self.targets.phrase_of(fields[TARGET])
        if phrase is None:
            expected = f"target words of {self.targets.factors} factors that are not empty"
            raise FormatError(self.path, expected, shown(fields[TARGET]), number)
        if self.new:
            return self.targets.number(phrase), scores
        return self.targets.phrases.number(phrase), scores


def _log_scores(field: bytes, count: int, path: str, line_number: int | None) -> list[float]:
    values = field.split()
    if len(values) != count:
        expected = f"{count} scores, as the ini says"
        raise FormatError(path, expected, f"{len(values)}", line_number)
    with suppress(ValueError):
        if all(map(NUMBER.fullmatch, values)):  # Python reads more, such as 1_0
            return [log_score(value) for value in values]
    expected = "scores of 0 or more (Moses takes their logs)"
    raise FormatError(path, expected, shown(field), line_number)


@compiled
def _parse(
    block: Bytes,
    lines: TableLines,
    score_field: int,
    least: int,
    most: int,
    with_target: bool,
    new: bool,
    known: Strings,
    target: Integers,
    scores: Floats,
) -> None:
    """Write the targets and scores of lines; the target is `ODD` if Python must parse the line."""
    ends = np.empty(most + 1, np.int64)
    for line in range(len(lines.source)):
        target[line] = ODD
        first, end = lines.field[line], lines.end[line]
        if first < lines.begin[line] + 3:
            continue
        fields = _field_ends(block, first, end, ends)
        if not least <= fields <= most:
            continue
        scores_begin = ends[score_field - 1] + 3 if score_field > 1 else first
        if not _read_scores(block, scores_begin, ends[score_field], scores[line]):
            continue
        if not with_target:
            target[line] = UNKNOWN
            continue
        begin, end = stripped(block, first, ends[TARGET])
        if _is_plain(block, begin, end):
            if new:
                target[line] = number_copied(known, block, begin, end)
            else:
                target[line] = known.slots[slot_of(known, block, begin, end)] - 1


@helper
def _field_ends(block: Bytes, place: int, end: int, ends: Integers) -> int:
    """Write where the fields from the second on end; return the number of fields.

    Counting stops at one more than `ends` has room for.
    """
    fields = 1
    while fields < len(ends):
        ends[fields] = field_end(block, place, end)
        fields += 1
        if ends[fields - 1] == end:
            return fields
        place = ends[fields - 1] + 3
    return fields + 1


@helper
def _is_plain(block: Bytes, first: int, last: int) -> bool:
    """Return whether a field is words with one space between them, without factors."""
    for place in range(first, last):
        if block[place] in (TAB, BAR, CARRIAGE_RETURN, NEW_LINE):
            return False
        if block[place] == SPACE and block[place + 1] == SPACE:
            return False
    return True


@helper
def _read_scores(block: Bytes, place: int, end: int, scores: Floats) -> bool:
    """Read the logs of `len(scores)` scores; return whether all are there and ordinary numbers."""
    for column in range(len(scores)):
        while place < end and (block[place] == SPACE or block[place] == TAB):
            place += 1
        value, place = read_number(block, place, end)
        if value < 0.0:
            return False
        scores[column] = LOWEST_LOG_SCORE
        if value > 0.0:
            scores[column] = max(math.log(value), LOWEST_LOG_SCORE)
    while place < end and block[place] in (SPACE, TAB, CARRIAGE_RETURN, NEW_LINE):
        place += 1
    return place == end


@compiled
def _split(phrases: Strings, words: Strings, flat: Integers, offsets: Integers) -> None:
    """Number the words of all phrases; see `TargetPhrases.split`."""
    used = 0
    for phrase in range(phrases.used[0]):
        first, last = phrases.begin[phrase], phrases.end[phrase]
        begin = first
        for place in range(first, last + 1):
            if last > first and (place == last or phrases.pool[place] == SPACE):
                flat[used] = number_copied(words, phrases.pool, begin, place)
                used += 1
                begin = place + 1
        offsets[phrase + 1] = used
