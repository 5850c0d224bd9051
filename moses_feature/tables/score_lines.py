"""The lines of an augmented table: the table's and the network's p(target | source)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import (
    COUNTS,
    LOWEST_LOG_SCORE,
    NUMBER,
    SCORES,
    SOURCE,
    TARGET,
    checked_fields,
    tokens,
)
from moses_feature.runtime.errors import FormatError, MosesFeatureError, shown
from moses_feature.runtime.json_files import member
from moses_feature.tables.features_json import features_json, read_columns, read_features
from moses_feature.tables.settings import PROBABILITY_COLUMN, UNKNOWN_TARGET_COLUMN

_LOWEST = math.exp(LOWEST_LOG_SCORE)
LARGEST_PROBABILITY = 1.001
"""A sum of relative frequencies may be rounded up."""
DIRECT_PROBABILITY = 2
"""Index of p(target | source) in a table that Moses' training made."""


@dataclass(frozen=True)
class ScoreLine:
    """A phrase pair.

    Attributes:
        source, target: one space between tokens.
        by_table, by_network: p(target | source).
        known: no target word is UNK, which would make one score stand for many pairs.
        source_count: the count of the source phrase; 0 if the table does not give it.
        line: the whole line.
    """

    source: bytes
    target: bytes
    by_table: float
    by_network: float
    known: bool
    source_count: float
    line: bytes

    @property
    def table_log_prob(self) -> float:
        """The natural log of `by_table`, not below Moses' lowest log score."""
        return _log(self.by_table)

    @property
    def network_log_prob(self) -> float:
        """The natural log of `by_network`, not below Moses' lowest log score."""
        return _log(self.by_network)


def network_column(table: str | Path) -> int:
    """Return the index of the network's probability in the score field of an augmented table.

    With several networks it is that of the first one.

    Raises:
        MosesFeatureError: the table is not augmented.
        FormatError: its `*.features.json` is damaged, or names no such column.
    """
    columns = read_columns(table)
    for name, column in columns.items():
        if name.rpartition(": ")[2] == PROBABILITY_COLUMN:
            return column
    found = ", ".join(columns)
    raise FormatError(features_json(table), f"a column {PROBABILITY_COLUMN}", found)


def network_digests(table: str | Path) -> list[str]:
    """Return the SHA-256 of the model (or averaged models) of the column of `network_column`.

    Raises:
        FormatError: the `*.features.json` of the table is damaged.
    """
    path, what = features_json(table), "the models of a table"
    facts = read_features(table)
    if "models" not in facts:  # files of older tables name one model
        return [member(facts, "model_sha256", str, path, what)]
    models: list[list[str]] = member(facts, "models", list[list[str]], path, what)
    columns = read_columns(table)
    wanted = network_column(table)
    name = next(name for name, column in columns.items() if column == wanted)
    prefix = name.rpartition(": ")[0]
    for of_column in models:
        if of_column[:1] == [prefix]:
            return of_column[1:]
    raise FormatError(path, f"models of {name!r}", "none")


def phrases_of_table(table: str | Path, column: int) -> Iterator[tuple[bytes, list[ScoreLine]]]:
    """Yield each source phrase with its lines, which stand together.

    Args:
        table: an augmented table.
        column: index of the network's probability in the score field.

    Raises:
        FormatError: a bad line, a number of scores that differs from the first line's, or a bad
            probability.
        MosesFeatureError: the lines have too few scores.
    """
    names = {place: name for name, place in read_columns(table).items()}
    has_penalty = names.get(column + 1, "").endswith(UNKNOWN_TARGET_COLUMN)
    penalty = column + 1 if has_penalty else None
    with LineReader(table) as reader:
        lines = _lines(reader, column, penalty)
        for source, of_source in groupby(lines, key=lambda line: line.source):
            yield source, list(of_source)


def _lines(reader: LineReader, column: int, penalty: int | None) -> Iterator[ScoreLine]:
    scores = None
    for line in reader:
        fields = checked_fields(line, reader.path, reader.line_number, scores)
        values = fields[SCORES].split()
        scores = len(values)
        if not DIRECT_PROBABILITY < column < scores:
            raise MosesFeatureError(
                f"{reader.path} at line {reader.line_number}: expected p(target | source) as third "
                f"score and the network's as number {column + 1}, found {scores} scores"
            )
        counts = fields[COUNTS].split() if len(fields) > COUNTS else []
        yield ScoreLine(
            b" ".join(tokens(fields[SOURCE])),
            b" ".join(tokens(fields[TARGET])),
            _probability(values[DIRECT_PROBABILITY], reader),
            _probability(values[column], reader),
            penalty is None or float(values[penalty]) == 1.0,
            _count(counts, reader),
            line,
        )


def _log(probability: float) -> float:
    return math.log(max(probability, _LOWEST))


def _probability(value: bytes, reader: LineReader) -> float:
    probability = float(value)
    if not 0 <= probability <= LARGEST_PROBABILITY:
        raise FormatError(reader.path, "a probability", shown(value), reader.line_number)
    return probability


def _count(counts: list[bytes], reader: LineReader) -> float:
    """Return the source phrase's count, second in a table's counts field; 0 if there is none."""
    if len(counts) < 2:
        return 0.0
    if not NUMBER.fullmatch(counts[1]):
        raise FormatError(reader.path, "a source count", shown(counts[1]), reader.line_number)
    return float(counts[1])
