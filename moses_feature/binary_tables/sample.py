"""Lines of some source phrases of a text table, drawn at random, to ask a binary table for.

All lines are looked at: what Moses' programs would write into a binary table without a word, and
what they stumble over, is an error.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from pathlib import Path

from moses_feature.arrays import Floats
from moses_feature.errors import DataError, FormatError, shown
from moses_feature.moses.features import log_scores
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    SCORES,
    SEPARATOR,
    SOURCE,
    TARGET,
    count_scores,
    link_outside,
    split_fields,
    tokens,
)

LONGEST = 50
"""Words of a source phrase that is asked for, at most."""

_NEGATIVE = re.compile(rb"(?<![eE])-")

Phrase = tuple[bytes, ...]


@dataclass
class TableSample:
    """Of a table.

    Attributes:
        scores: of each line.
        lines: in all.
        drawn: the lines of the source phrases drawn, as they stand in the table, in its order.
        targets: of the source phrases drawn, for each target the scores of its lines, natural
            logs as Moses takes them.
    """

    scores: int = 0
    lines: int = 0
    drawn: list[bytes] = field(default_factory=list)
    targets: dict[Phrase, dict[Phrase, list[Floats]]] = field(default_factory=dict)


def sample_table(path: str | Path, count: int, seed: int = 1) -> TableSample:
    """Draw source phrases, each with the same probability; the lines of one stand together.

    Raises:
        FormatError: a damaged line, another number of scores, one that Moses cannot take, an empty
            phrase, rules, factors, an alignment outside the phrases, or lines that are not in the
            order of `LC_ALL=C sort`.
        DataError: no line, or none that can be asked for.
    """
    generator = random.Random(seed)  # noqa: S311  # nothing secret
    sample = TableSample()
    drawn: list[list[tuple[int, bytes]]] = []
    current: list[tuple[int, bytes]] | None = None
    source, seen, previous = None, 0, b""
    with LineReader(path) as reader:
        for line in reader:
            fields = split_fields(line, path, reader.line_number)
            _check_line(fields, sample, path, reader.line_number)
            key = SEPARATOR.join([*fields[: TARGET + 1], b""])
            if key < previous:
                raise FormatError(
                    path,
                    "lines in the order of LC_ALL=C sort",
                    f"others: zcat {path} | LC_ALL=C sort | gzip > sorted.gz",
                    reader.line_number,
                )
            previous = key
            sample.lines += 1
            if fields[SOURCE] != source:
                source = fields[SOURCE]
                current = None
                if len(tokens(source)) <= LONGEST:
                    seen += 1
                    place = len(drawn) if len(drawn) < count else generator.randrange(seen)
                    if place < count:
                        current = []
                        drawn[place : place + 1] = [current]
            if current is not None:
                current.append((reader.line_number, line))
    if not sample.lines:
        raise DataError(f"{path}: expected lines of a phrase table, found an empty file")
    if count and not drawn:
        raise DataError(f"{path}: expected source phrases of at most {LONGEST} words, found none")
    for line_number, line in sorted(line for group in drawn for line in group):
        _add(sample, line, path, line_number)
    return sample


def _check_line(
    fields: list[bytes], sample: TableSample, path: str | Path, line_number: int
) -> None:
    scores = count_scores(fields[SCORES], path, line_number)
    if not sample.lines:
        sample.scores = scores
    if scores != sample.scores:
        raise FormatError(path, f"{sample.scores} scores as in line 1", f"{scores}", line_number)
    if b"-" in fields[SCORES] and _NEGATIVE.search(fields[SCORES]):
        raise FormatError(path, "scores of 0 or more", shown(fields[SCORES]), line_number)
    source, target = tokens(fields[SOURCE]), tokens(fields[TARGET])
    if not source or not target:
        side = "source" if not source else "target"
        raise FormatError(path, "phrases of a word and more", f"an empty {side}", line_number)
    if source[-1] == b"[X]":
        expected, found = "phrases (rules with non-terminals are not taken)", shown(fields[SOURCE])
        raise FormatError(path, expected, found, line_number)
    if b"|" in fields[SOURCE] or b"|" in fields[TARGET]:
        expected = "words without factors (and | escaped, as &#124;)"
        found = shown(b" ||| ".join(fields[: TARGET + 1]))
        raise FormatError(path, expected, found, line_number)
    if (link := link_outside(fields)) is not None:
        expected = "alignment points inside the phrases"
        raise FormatError(path, expected, shown(link), line_number)


def _add(sample: TableSample, line: bytes, path: str | Path, line_number: int) -> None:
    sample.drawn.append(line)
    fields = split_fields(line, path, line_number)
    source, target = (tuple(tokens(fields[place])) for place in (SOURCE, TARGET))
    try:
        values = log_scores(fields[SCORES])
    except ValueError:
        expected, found = "scores of 0 or more", shown(fields[SCORES])
        raise FormatError(path, expected, found, line_number) from None
    sample.targets.setdefault(source, {}).setdefault(target, []).append(values)
