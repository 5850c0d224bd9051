"""A pass over a text table: the faults of its lines, and its words for comparing texts with it.

Follows `moses/TranslationModel/RuleTable/LoaderStandard.cpp` (scores), `moses/PP/Factory.cpp`
(properties) and the sorting that `processPhraseTableMin` and `CreateProbingPT2` rely on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moses_feature.doctor.finding import Finding, Severity
from moses_feature.moses.lines import BYTE_ORDER_MARK, LineReader
from moses_feature.moses.phrase_table import (
    ALIGNMENT,
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

DIRECT, INVERSE = 2, 0
"""Columns of p(target | source) and p(source | target) in Moses' tables."""
LEAST_SCORES = 4
LIKELY = 0.1
"""The least p(target | source) of translations used for comparing texts."""
SUM_AT_MOST = 1.01
"""The largest sum of p(target | source) over a phrase's targets: 1 plus rounding errors."""
SHARE_OF_SUMS = 0.01
LOWEST_SCORE = math.exp(LOWEST_LOG_SCORE)
"""Below this, Moses takes a score for its floor, a natural log of -100."""
LARGEST_SCORE = 3.4028235e38
PHRASE_PENALTY = b"2.718"
"""A column of old tables: e in every line."""
LINES_SHOWN = 5
REGISTERED_PROPERTIES = frozenset(
    b"Counts SourceLabels TargetConstituentBoundariesLeft "
    b"TargetConstituentBoundariesRightAdjacent TargetPreferences Tree SpanLength "
    b"NonTermContext Orientation".split()
)
_PROPERTY = re.compile(rb"\{\{([^ }]*)")


@dataclass(frozen=True)
class Fault:
    """What can be wrong with a line: how serious that is, its effect in Moses, and its remedy."""

    severity: Severity
    what: str
    effect: str
    remedy: str


MARK = Fault(
    "warning",
    "byte order mark (U+FEFF)",
    "Moses takes it as a part of the first word",
    "take the first three bytes of the file out: tail -c +4",
)
FIELDS = Fault(
    "problem",
    "not 3 to 7 fields",
    "Moses stops or misreads the line",
    "make the table again, or take these lines out",
)
NO_SOURCE = Fault("problem", "empty source phrase", "Moses skips the line", "take these lines out")
NO_SCORES = Fault("problem", "no scores", "Moses stops", "make the table again")
OTHER_COUNT = Fault(
    "problem",
    "not as many scores as line 1",
    "Moses stops (`Size of scoreVector != number`)",
    "make the table again",
)
NO_NUMBER = Fault(
    "problem",
    "score that is not a number",
    "Moses stops with 'Bad score'",
    "find what wrote nan or inf there: a division by zero as a rule",
)
NEGATIVE = Fault(
    "problem",
    "negative score",
    "its log is nan and Moses silently drops the phrase pair",
    "exponentiate log probabilities: Moses takes the logs itself",
)
ZERO = Fault(
    "warning",
    "score of zero or below 3.7e-44",
    "Moses takes its log as -100",
    "write 1e-10 or so where something is not 0 but unlikely",
)
INFINITE = Fault(
    "problem",
    "score beyond the range of a 32-bit float",
    "it is infinite in Moses",
    "make the table again",
)
SPARSE_PAIRS = Fault(
    "problem",
    "sparse scores not in pairs of name and value",
    "Moses stops",
    "take the sparse scores out",
)
SPARSE_NUMBER = Fault(
    "problem",
    "sparse score that is not a finite number",
    "Moses stops",
    "take the sparse scores out",
)
LINK = Fault(
    "problem",
    "alignment point outside the phrases",
    "what reads alignments reads wrong words",
    "see that the table is of these phrases; alignments are counted from 0",
)
PROPERTY = Fault(
    "warning",
    "property that is not one of Moses'",
    "a Moses that does not know it stops",
    "take the seventh field out, or use a Moses that knows it",
)
ORDER = Fault(
    "note",
    "not in the order of LC_ALL=C sort from here",
    "processPhraseTableMin needs it, and CreateProbingPT2 needs equal sources together; Moses "
    "reads text in any order",
    "before a table is made binary: LC_ALL=C sort, and compress again",
)


@dataclass
class FaultyLines:
    """The lines that have a fault: how many, and the first ones with what was found there."""

    count: int = 0
    last: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, number: int, found: str) -> None:
        """Add a line, once."""
        if self.last == number:
            return
        self.last = number
        self.count += 1
        if len(self.examples) < LINES_SHOWN:
            self.examples.append(f"{number}: {found}" if found else str(number))

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.examples) else ""
        plural = "s" if self.count > 1 else ""
        return f"{self.count:,} line{plural} ({', '.join(self.examples)}{more})"


class TableScan:
    """Reads a table, or its first lines.

    Args:
        path: the table.
        most: the number of lines to read; None for all.
        wanted: source words whose translations are kept.

    Attributes:
        columns: scores of the first line; None if there is no line with scores.
        lines: the number of lines read.
        whole: whether all lines were read.
        source, target: the words of both sides.
        translations: for the wanted words, the words of their likely targets.
        has_alignments: whether a line has word alignments.

    Raises:
        MosesFeatureError: the file cannot be read.
    """

    def __init__(
        self, path: str | Path, most: int | None = None, wanted: Collection[bytes] = ()
    ) -> None:
        self.path = Path(path)
        self.columns: int | None = None
        self.lines = 0
        self.whole = True
        self.source: set[bytes] = set()
        self.target: set[bytes] = set()
        self.has_alignments = False
        self.translations: dict[bytes, set[bytes]] = {word: set() for word in wanted}
        self._faults: dict[Fault, FaultyLines] = {}
        self._first_scores: list[bytes] = []
        self._varying: set[int] = set()
        self._above_floor: set[int] = set()
        self._sums = _Sums()
        self._previous, self._source, self._sorted = b"", b"", True
        with LineReader(path) as reader:
            for line in reader:
                if most is not None and self.lines == most:
                    self.whole = False
                    break
                self.lines += 1
                self._read(line, reader.line_number)
        self._sums.end()

    def _read(self, line: bytes, number: int) -> None:
        if number == 1 and line.startswith(BYTE_ORDER_MARK):
            self._add(MARK, number)
        try:
            fields = split_fields(line, self.path, number)
        except FormatError:
            self._add(FIELDS, number, str(line.count(SEPARATOR) + 1))
            return
        source, scores = tokens(fields[SOURCE]), tokens(fields[SCORES])
        if not source:
            self._add(NO_SOURCE, number)
        self._check_scores(scores, number)
        if len(fields) > SPARSE:
            self._check_sparse(tokens(fields[SPARSE]), number)
        if (link := link_outside(fields)) is not None:
            self._add(LINK, number, shown(link))
        if len(fields) > PROPERTIES:
            for key in set(_PROPERTY.findall(fields[PROPERTIES])) - REGISTERED_PROPERTIES:
                self._add(PROPERTY, number, shown(key))
        key = SEPARATOR.join([*fields[: TARGET + 1], b""])
        if self._sorted and key < self._previous:
            self._sorted = False
            self._add(ORDER, number, shown(line))
        self._previous = key
        self._note_words(fields, source, scores)

    def _check_scores(self, scores: list[bytes], number: int) -> None:
        if not scores:
            self._add(NO_SCORES, number)
            return
        if self.columns is None:
            self.columns = len(scores)
            self._first_scores = scores
        elif len(scores) != self.columns:
            self._add(OTHER_COUNT, number, str(len(scores)))
            return
        for column, text in enumerate(scores):
            value = parse_score(text)
            first = self._first_scores[column]
            if column not in self._varying and text != first and value != parse_score(first):
                self._varying.add(column)
            fault = _fault(value)
            if fault is None:
                self._above_floor.add(column)
            else:
                self._add(fault, number, shown(text))

    def _check_sparse(self, sparse: list[bytes], number: int) -> None:
        if len(sparse) % 2:
            self._add(SPARSE_PAIRS, number)
        for text in sparse[1::2]:
            if not NUMBER.fullmatch(text):
                self._add(SPARSE_NUMBER, number, shown(text))

    def _note_words(self, fields: list[bytes], source: list[bytes], scores: list[bytes]) -> None:
        target = tokens(fields[TARGET])
        if fields[SOURCE] != self._source:
            self._sums.end()
            self._source = fields[SOURCE]
            self.source.update(source)
        self.target.update(target)
        self.has_alignments |= len(fields) > ALIGNMENT and bool(fields[ALIGNMENT].strip())
        probability = _probability(scores, DIRECT)
        if len(source) == 1 and source[0] in self.translations and probability >= LIKELY:
            self.translations[source[0]].update(target)
        if len(scores) >= LEAST_SCORES:
            self._sums.add(probability, _probability(scores, INVERSE))

    def _add(self, fault: Fault, number: int, found: str = "") -> None:
        self._faults.setdefault(fault, FaultyLines()).add(number, found)

    def findings(self) -> Iterator[Finding]:
        """Yield the faults of the lines, of columns, and of the order of the columns."""
        where = str(self.path)
        for fault, lines in self._faults.items():
            what = f"{fault.what}: {lines}"
            yield Finding(fault.severity, where, what, fault.effect, fault.remedy)
        if not self.lines:
            yield Finding(
                "problem",
                where,
                "no lines",
                "Moses would know no phrase",
                "make the table again: it was filtered to nothing, or writing it failed",
            )
        if self.lines > 1 and NEGATIVE not in self._faults:
            for column, text in enumerate(self._first_scores):
                yield from self._column_findings(column, text)
        yield from self._sums.findings(where)

    def _column_findings(self, column: int, text: bytes) -> Iterator[Finding]:
        remedy = "leave the column out, or find out why nothing varies"
        where, name = str(self.path), f"column {column} (counted from 0)"
        if column not in self._above_floor:
            what = f"{name}: every score is at Moses' floor or unusable"
            yield Finding("problem", where, what, "it tells no phrase pair from another", remedy)
        elif self.whole and column not in self._varying:
            inert = parse_score(text) == 1
            effect = "its weight acts as a phrase penalty"
            if inert:
                effect = "log 1 = 0, so its weight has no effect"
            yield Finding(
                "note" if inert or text.startswith(PHRASE_PENALTY) else "warning",
                where,
                f"{name} is {text.decode()} in every line",
                effect,
                remedy,
            )


class _Sums:
    """Sums of p(target | source) and of the inverse column over the targets of each source."""

    def __init__(self) -> None:
        self._groups = self._too_much = self._inverse_too_much = 0
        self._direct = self._inverse = 0.0

    def add(self, direct: float, inverse: float) -> None:
        """Add a line's probabilities."""
        self._direct += direct
        self._inverse += inverse

    def end(self) -> None:
        """End a source phrase."""
        self._groups += 1
        self._too_much += self._direct > SUM_AT_MOST
        self._inverse_too_much += self._inverse > SUM_AT_MOST
        self._direct = self._inverse = 0.0

    def findings(self, where: str) -> Iterator[Finding]:
        """Yield a finding if the column of p(target | source) is something else."""
        if self._too_much <= max(1, SHARE_OF_SUMS * self._groups):
            return
        swapped = self._inverse_too_much < self._too_much / 10
        yield Finding(
            "warning",
            where,
            f"column {DIRECT} (counted from 0) sums to more than 1 over the targets of "
            f"{self._too_much:,} of {self._groups:,} source phrases"
            + (f", and column {INVERSE} does not" if swapped else ""),
            "it is not p(target | source), by which Moses' programs rank and cut",
            f"see the order of the columns: {INVERSE} is p(source | target), {DIRECT} is "
            "p(target | source); new ones stand behind all others",
        )


def _probability(scores: list[bytes], column: int) -> float:
    """Return a probability of a line; 1 if the table has no such column, 0 if it is no number."""
    if len(scores) < LEAST_SCORES:
        return 1.0
    return parse_score(scores[column]) or 0.0


def parse_score(text: bytes) -> float | None:
    """Return a score as a number, or None if Moses would read no number."""
    if NUMBER.fullmatch(text):
        return float(text)
    return math.inf if text == b"inf" else None


def _fault(value: float | None) -> Fault | None:
    """Return the fault of a score; None if there is none."""
    if value is None:
        return NO_NUMBER
    if value < 0:
        return NEGATIVE
    if value < LOWEST_SCORE:
        return ZERO
    return INFINITE if value > LARGEST_SCORE else None


@dataclass(frozen=True)
class WordsOfTables:
    """The words of some tables.

    Attributes:
        source, target: the words of both sides.
        translations: for the wanted words, the words of their phrases' targets.
    """

    source: Collection[bytes]
    target: Collection[bytes]
    translations: Mapping[bytes, set[bytes]]

    @classmethod
    def of_tables(cls, scans: Sequence[TableScan]) -> WordsOfTables:
        """Return the words of tables that were scanned with the same wanted words."""
        wanted = scans[0].translations
        return cls(
            set().union(*(scan.source for scan in scans)),
            set().union(*(scan.target for scan in scans)),
            {word: set().union(*(s.translations[word] for s in scans)) for word in wanted},
        )
