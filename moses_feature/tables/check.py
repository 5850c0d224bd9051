"""Find lines of a phrase table that Moses would reject or misread, and say what it would do.

Follows `moses/TranslationModel/RuleTable/LoaderStandard.cpp` (scores), `moses/PP/Factory.cpp`
(properties) and the sorting that `processPhraseTableMin` and `CreateProbingPT2` rely on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    LOWEST_LOG_SCORE,
    NUMBER,
    PROPERTIES,
    SCORES,
    SEPARATOR,
    SOURCE,
    SPARSE,
    TARGET,
    link_outside,
    split_fields,
    tokens,
)
from moses_feature.runtime.errors import FormatError, shown

LOWEST_SCORE = math.exp(LOWEST_LOG_SCORE)
"""Below this, Moses takes a score for its floor, a natural log of -100."""
LARGEST_SCORE = 3.4028235e38
LINES_SHOWN = 5
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
REGISTERED_PROPERTIES = frozenset(
    b"Counts SourceLabels TargetConstituentBoundariesLeft "
    b"TargetConstituentBoundariesRightAdjacent TargetPreferences Tree SpanLength "
    b"NonTermContext Orientation".split()
)
_PROPERTY = re.compile(rb"\{\{([^ }]*)")


@dataclass
class TableFault:
    """A fault found in a table.

    Attributes:
        what: the fault, and what Moses would do.
        lines: the number of lines that have it; 0 if it is not about single lines.
        examples: numbers (1-based) and contents of the first of these lines.
        harmless: whether Moses works in spite of it.
        last: the number of the last line that has it.
    """

    what: str
    lines: int = 0
    examples: list[str] = field(default_factory=list)
    harmless: bool = False
    last: int = 0

    @property
    def places(self) -> str:
        """The number of lines, and examples; empty if it is not about single lines."""
        if not self.lines:
            return ""
        more = ", …" if self.lines > len(self.examples) else ""
        plural = "s" if self.lines > 1 else ""
        return f": {self.lines} line{plural} ({', '.join(self.examples)}{more})"

    def __str__(self) -> str:
        return self.what + self.places


def check_table(path: str | Path) -> list[TableFault]:
    """Return the faults of a phrase table.

    Raises:
        MosesFeatureError: the file cannot be read.
    """
    checker = TableChecker(path)
    with LineReader(path) as reader:
        for line in reader:
            checker.check(line, reader.line_number)
    return checker.findings()


class TableChecker:
    """Checks a table line by line.

    Attributes:
        columns: scores of the first line; None before it.
    """

    def __init__(self, path: str | Path) -> None:
        self.columns: int | None = None
        self._path = path
        self._findings: dict[str, TableFault] = {}
        self._lines = 0
        self._first_scores: list[bytes] = []
        self._varying: set[int] = set()
        self._above_floor: set[int] = set()
        self._previous = b""
        self._sorted = True

    def check(self, line: bytes, number: int) -> None:
        """Check the next line."""
        self._lines += 1
        if number == 1 and line.startswith(BYTE_ORDER_MARK):
            self._add("byte order mark (U+FEFF): Moses takes it as a part of the first word", 1)
        try:
            fields = split_fields(line, self._path, number)
        except FormatError:
            count = line.count(SEPARATOR) + 1
            self._add("not 3 to 7 fields: Moses stops or misreads the line", number, str(count))
            return
        if not tokens(fields[SOURCE]):
            self._add("empty source phrase: Moses skips the line", number)
        self._check_scores(fields[SCORES], number)
        if len(fields) > SPARSE:
            self._check_sparse(tokens(fields[SPARSE]), number)
        if (link := link_outside(fields)) is not None:
            self._add("alignment point outside the phrases", number, shown(link))
        if len(fields) > PROPERTIES:
            for key in set(_PROPERTY.findall(fields[PROPERTIES])) - REGISTERED_PROPERTIES:
                self._add("property that Moses does not know: it stops", number, shown(key))
        self._check_order(line, fields, number)

    def _check_scores(self, field: bytes, number: int) -> None:
        scores = tokens(field)
        if not scores:
            self._add("no scores: Moses stops", number)
            return
        if self.columns is None:
            self.columns = len(scores)
            self._first_scores = scores
        elif len(scores) != self.columns:
            self._add(
                f"not {self.columns} scores as in line 1: Moses stops", number, str(len(scores))
            )
            return
        for column, text in enumerate(scores):
            value = parse_score(text)
            if column not in self._varying and text != self._first_scores[column]:
                self._note_change(column, value)
            problem = _problem(value)
            if problem is None:
                self._above_floor.add(column)
            else:
                self._add(problem, number, shown(text))

    def _note_change(self, column: int, value: float | None) -> None:
        if value != parse_score(self._first_scores[column]):  # 1 and 1.0 are the same
            self._varying.add(column)

    def _check_sparse(self, sparse: list[bytes], number: int) -> None:
        if len(sparse) % 2:
            self._add("sparse scores not in pairs of name and value: Moses stops", number)
        for text in sparse[1::2]:
            if not NUMBER.fullmatch(text):
                self._add("sparse score that is not a finite number", number, shown(text))

    def _check_order(self, line: bytes, fields: list[bytes], number: int) -> None:
        key = SEPARATOR.join([*fields[: TARGET + 1], b""])
        if self._sorted and key < self._previous:
            self._sorted = False
            self._add(
                "not in the order of LC_ALL=C sort from here: processPhraseTableMin needs it, and "
                "CreateProbingPT2 needs equal sources together (plain text tables may stay so)",
                number,
                shown(line),
            )
        self._previous = key

    def _add(self, what: str, number: int, found: str = "") -> None:
        finding = self._findings.setdefault(what, TableFault(what))
        if finding.last == number:  # count a line only once
            return
        finding.last = number
        finding.lines += 1
        if len(finding.examples) < LINES_SHOWN:
            finding.examples.append(f"{number}: {found}" if found else str(number))

    def findings(self) -> list[TableFault]:
        """Return the faults of the lines, and of the columns as a whole."""
        findings = list(self._findings.values())
        if not self._lines:
            findings.append(TableFault("no lines: Moses would know no phrase"))
        for column, text in enumerate(self._first_scores):
            if self._lines > 1:
                findings += self._column_findings(column, text)
        return findings

    def _column_findings(self, column: int, text: bytes) -> Iterator[TableFault]:
        if column not in self._above_floor:
            yield TableFault(f"column {column}: every score is at Moses' floor or unusable")
        elif column not in self._varying:
            inert = parse_score(text) == 1
            effect = (
                "log 1 = 0, so its weight has no effect"
                if inert
                else "its weight acts as a phrase penalty"
            )
            yield TableFault(
                f"column {column} (counted from 0) is {text.decode()} in every line: {effect}",
                harmless=inert,
            )


def parse_score(text: bytes) -> float | None:
    """Return a score as a number, or None if Moses would read no number."""
    if NUMBER.fullmatch(text):
        return float(text)
    return math.inf if text == b"inf" else None


def _problem(value: float | None) -> str | None:
    """Return the fault of a score and what Moses would do; None if there is none."""
    if value is None:
        return "score that is not a number: Moses stops with 'Bad score'"
    if value < 0:
        return "negative score: its log is nan and Moses silently drops the phrase pair"
    if value < LOWEST_SCORE:
        return "score of zero or below 3.7e-44: Moses takes its log as -100"
    if value > LARGEST_SCORE:
        return "score beyond the range of a 32-bit float: infinite in Moses"
    return None
