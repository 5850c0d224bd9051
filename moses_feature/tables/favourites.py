"""The targets that a table and the network prefer, side by side (the paper's Table 2)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from moses_feature.errors import FormatError, MosesFeatureError, shown
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    COUNTS,
    NUMBER,
    SCORES,
    SOURCE,
    TARGET,
    count_scores,
    split_fields,
    tokens,
)

Kind = Literal["frequent", "rare"]
DIRECT_PROBABILITY = 2
"""Index of p(target | source) in a table that Moses' training made."""
FEWEST_TARGETS = 3


@dataclass(frozen=True)
class Favourites:
    """A source phrase and its best targets, the best first, with their probabilities.

    Attributes:
        source: the phrase.
        count: how often it was seen in the training corpus, where the table says so.
        by_table, by_network: targets and p(target | source).
    """

    source: bytes
    count: float
    by_table: list[tuple[bytes, float]]
    by_network: list[tuple[bytes, float]]


@dataclass(frozen=True)
class _Line:
    source: bytes
    target: bytes
    by_table: float
    by_network: float
    source_count: float


def favourites(
    table: str | Path, column: int, phrases: Iterable[bytes], best: int = 3
) -> list[Favourites]:
    """Return the favourites for the given source phrases, in table order.

    Args:
        table: an augmented table, lines of a source phrase together.
        column: index of the network's probability in the score field.
        phrases: source phrases, one space between tokens.
        best: how many targets.
    """
    wanted = set(phrases)
    return [
        _favourites(source, lines, best)
        for source, lines in _groups(table, column)
        if source in wanted
    ]


def favourites_of_long_phrases(
    table: str | Path, column: int, kind: Kind, phrases: int = 10, words: int = 4, best: int = 3
) -> list[Favourites]:
    """Return the favourites for the most or least frequent long source phrases.

    Only phrases of at least `words` words and with three or more targets are taken; among equally
    frequent ones those with more targets, then the first in the table.
    """
    sign = 1 if kind == "frequent" else -1
    candidates = (
        ((sign * lines[0].source_count, len(lines), -number), source, lines)
        for number, (source, lines) in enumerate(_groups(table, column))
        if len(lines) >= FEWEST_TARGETS and source.count(b" ") + 1 >= words
    )
    chosen = heapq.nlargest(phrases, candidates, key=lambda candidate: candidate[0])
    return [_favourites(source, lines, best) for _, source, lines in chosen]


def _groups(table: str | Path, column: int) -> Iterator[tuple[bytes, list[_Line]]]:
    with LineReader(table) as reader:
        for source, lines in groupby(_lines(reader, column), key=lambda line: line.source):
            yield source, list(lines)


def _lines(reader: LineReader, column: int) -> Iterator[_Line]:
    for line in reader:
        fields = split_fields(line, reader.path, reader.line_number)
        scores = count_scores(fields[SCORES], reader.path, reader.line_number)
        if not DIRECT_PROBABILITY < column < scores:
            raise MosesFeatureError(
                f"{reader.path} at line {reader.line_number}: expected p(target | source) as third "
                f"score and the network's as number {column + 1}, found {scores} scores"
            )
        values = fields[SCORES].split()
        counts = fields[COUNTS].split() if len(fields) > COUNTS else []
        yield _Line(
            b" ".join(tokens(fields[SOURCE])),
            b" ".join(tokens(fields[TARGET])),
            float(values[DIRECT_PROBABILITY]),
            float(values[column]),
            _count(counts, reader),
        )


def _count(counts: list[bytes], reader: LineReader) -> float:
    """Return the count of the source phrase, second in a table's counts field; 0 if it has none."""
    if len(counts) < 2:
        return 0.0
    if not NUMBER.fullmatch(counts[1]):
        raise FormatError(reader.path, "a source count", shown(counts[1]), reader.line_number)
    return float(counts[1])


def _favourites(source: bytes, lines: list[_Line], best: int) -> Favourites:
    by_table = heapq.nlargest(best, lines, key=lambda line: line.by_table)
    by_network = heapq.nlargest(best, lines, key=lambda line: line.by_network)
    return Favourites(
        source,
        lines[0].source_count,
        [(line.target, line.by_table) for line in by_table],
        [(line.target, line.by_network) for line in by_network],
    )


def as_text(rows: Iterable[Favourites]) -> str:
    """Return the favourites as a plain text table."""
    lines = []
    for row in rows:
        source = row.source.decode(errors="replace")
        lines.append(f"{source}   (seen {row.count:g} times)")
        left = [_cell(*favourite) for favourite in row.by_table]
        right = [_cell(*favourite) for favourite in row.by_network]
        width = max(36, *(len(cell) for cell in left))
        lines.append(f"    {'phrase table':<{width}}  network")
        lines += [f"    {a:<{width}}  {b}" for a, b in zip(left, right, strict=True)]
    return "\n".join(lines)


def _cell(target: bytes, probability: float) -> str:
    return f"{probability:8.2g}  {target.decode(errors='replace')}"
