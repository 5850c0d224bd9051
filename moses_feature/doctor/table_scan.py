"""A pass over a text table, for the faults of its lines and for comparing texts with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_feature.doctor.finding import Finding
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    ALIGNMENT,
    SCORES,
    SEPARATOR,
    SOURCE,
    TARGET,
    tokens,
)
from moses_feature.tables.check import TableChecker

DIRECT, INVERSE = 2, 0
"""Columns of p(target | source) and p(source | target) in Moses' tables."""
LEAST_SCORES = 4
LIKELY = 0.1
"""The least p(target | source) of translations used for comparing texts."""
SUM_AT_MOST = 1.01
"""The largest sum of p(target | source) over a phrase's targets: 1 plus rounding errors."""
SHARE_OF_SUMS = 0.01
REMEDIES = {
    "negative": "exponentiate log probabilities: Moses takes the logs itself",
    "score of zero": "write 1e-10 or so where something is not 0 but unlikely",
    "score that is not a number": "find what wrote nan or inf there: a division by zero as a rule",
    "byte order mark": "take the first three bytes of the file out: tail -c +4",
    "column": "leave the column out, or find out why nothing varies",
    "not in the order": "LC_ALL=C sort, and compress again",
    "alignment": "see that the table is of these phrases; alignments are counted from 0",
    "property": "take the seventh field out, or use a Moses that knows it",
    "no lines": "make the table again: it was filtered to nothing, or writing it failed",
}
PENALTY = "is 2.718 in every line"
"""The phrase penalty that old tables have."""
IN_TEXT_HARMLESS = "not in the order"
"""Faults that matter only to binarising tools."""
OTHERWISE = "make the table again, or take these lines out"


class TableScan:
    """Reads a table, or its first lines.

    Args:
        path: the table.
        most: the number of lines to read; None for all.
        wanted: source words whose translations are kept.

    Attributes:
        columns: scores of each line; None if there is no line.
        lines: the number of lines read.
        whole: whether all lines were read.
        source, target: the words of both sides.
        translations: for the wanted words, the words of their likely targets.
        sources: source phrases, as in the table.
        has_alignments: whether a line has word alignments.
    """

    def __init__(self, path: Path, most: int | None = None, wanted: Collection[bytes] = ()) -> None:
        self.path = path
        self.lines = 0
        self.whole = True
        self.source: set[bytes] = set()
        self.target: set[bytes] = set()
        self.sources: list[bytes] = []
        self.has_alignments = False
        self.translations: dict[bytes, set[bytes]] = {word: set() for word in wanted}
        self._checker = TableChecker(path)
        self._groups = self._too_much = self._inverse_too_much = 0
        self._sums = [0.0, 0.0]
        self._previous = b""
        with LineReader(path) as reader:
            for line in reader:
                if most is not None and self.lines == most:
                    self.whole = False
                    break
                self.lines += 1
                self._checker.check(line, reader.line_number)
                fields = line.split(SEPARATOR)
                if len(fields) > SCORES:
                    self._note(fields)
        self._end_group()

    @property
    def columns(self) -> int | None:
        """Scores of the first line."""
        return self._checker.columns

    def _note(self, fields: list[bytes]) -> None:
        source, target = tokens(fields[SOURCE]), tokens(fields[TARGET])
        if fields[SOURCE] != self._previous:
            self._end_group()
            self._previous = fields[SOURCE]
            self.source.update(source)
            self.sources.append(b" ".join(source))
        self.target.update(target)
        self.has_alignments |= len(fields) > ALIGNMENT and bool(fields[ALIGNMENT].strip())
        scores = fields[SCORES].split()
        if len(source) == 1 and source[0] in self.translations and _is_likely(scores):
            self.translations[source[0]].update(target)
        if len(scores) >= LEAST_SCORES:
            try:
                self._sums[0] += float(scores[DIRECT])
                self._sums[1] += float(scores[INVERSE])
            except ValueError:
                pass  # the checker reports it

    def _end_group(self) -> None:
        """Add up p over the targets of the source phrase that has just ended."""
        direct, inverse = self._sums
        self._groups += 1
        self._too_much += direct > SUM_AT_MOST
        self._inverse_too_much += inverse > SUM_AT_MOST
        self._sums = [0.0, 0.0]

    def findings(self) -> Iterator[Finding]:
        """Yield the faults of the lines, and of the order of the columns."""
        findings = self._checker.findings()
        many = {found.what for found in findings if found.lines > self.lines / 2}
        for found in findings:
            what, _, effect = found.what.partition(": ")
            if what.startswith("column") and any(w.startswith("negative") for w in many):
                continue  # a consequence of another fault
            if "in every line" in what and not self.whole:
                continue  # the table was not read to its end
            if what.startswith("score of zero") and any(w.startswith("negative") for w in many):
                continue
            remedy = next((r for start, r in REMEDIES.items() if what.startswith(start)), OTHERWISE)
            harmless = found.harmless or what.startswith(IN_TEXT_HARMLESS) or PENALTY in what
            yield Finding(
                "note" if harmless else "problem",
                str(self.path),
                f"{what}{found.places}",
                effect or "Moses takes it as it is; what reads alignments reads wrong words",
                remedy,
            )
        if self._too_much > max(1, SHARE_OF_SUMS * self._groups):
            swapped = self._inverse_too_much < self._too_much / 10
            yield Finding(
                "warning",
                str(self.path),
                f"column {DIRECT} (counted from 0) sums to more than 1 over the targets of "
                f"{self._too_much:,} of {self._groups:,} source phrases"
                + (f", and column {INVERSE} does not" if swapped else ""),
                "it is not p(target | source), by which Moses' programs rank and cut",
                f"see the order of the columns: {INVERSE} is p(source | target), {DIRECT} is "
                "p(target | source); new ones stand behind all others",
            )


def _is_likely(scores: list[bytes]) -> bool:
    """Return whether p(target | source) is not small, if there is such a column."""
    if len(scores) < LEAST_SCORES:
        return True
    try:
        return float(scores[DIRECT]) >= LIKELY
    except ValueError:
        return False


@dataclass(frozen=True)
class Words:
    """The words of some tables.

    Attributes:
        source, target: the words of both sides.
        translations: for the wanted words, the words of their phrases' targets.
    """

    source: set[bytes]
    target: set[bytes]
    translations: dict[bytes, set[bytes]]

    @classmethod
    def of_tables(cls, scans: Sequence[TableScan]) -> Words:
        """Return the words of tables that were scanned with the same wanted words."""
        wanted = scans[0].translations
        return cls(
            set().union(*(scan.source for scan in scans)),
            set().union(*(scan.target for scan in scans)),
            {word: set().union(*(s.translations[word] for s in scans)) for word in wanted},
        )
