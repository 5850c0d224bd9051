"""Lines of some source phrases of a text table, drawn at random, to ask a binary table for."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from moses_feature.arrays import Floats
from moses_feature.errors import DataError, FormatError, shown
from moses_feature.moses.features import log_scores
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import SCORES, SEPARATOR, SOURCE, TARGET, split_fields, tokens

LONGEST = 50
"""Words of a source phrase that is asked for, at most."""

Phrase = tuple[bytes, ...]


@dataclass
class TableSample:
    """Of a table.

    Attributes:
        scores: of each line.
        lines: in all.
        is_sorted: whether they are in the order of `LC_ALL=C sort`.
        drawn: the lines of the source phrases drawn, as they stand in the table, in its order.
        targets: of the source phrases drawn, for each target the scores of its lines, natural
            logs as Moses takes them.
    """

    scores: int = 0
    lines: int = 0
    is_sorted: bool = True
    drawn: list[bytes] = field(default_factory=list)
    targets: dict[Phrase, dict[Phrase, list[Floats]]] = field(default_factory=dict)


def sample_table(path: str | Path, count: int, seed: int = 1) -> TableSample:
    """Draw source phrases, each with the same probability; the lines of one stand together.

    Raises:
        FormatError: a damaged line, other numbers of scores, rules, or a score that Moses cannot
            take.
        DataError: no line.
    """
    generator = random.Random(seed)  # noqa: S311  # nothing secret
    sample = TableSample()
    drawn: list[list[tuple[int, bytes]]] = []
    current: list[tuple[int, bytes]] | None = None
    source, seen, previous = None, 0, b""
    with LineReader(path) as reader:
        for line in reader:
            fields = split_fields(line, path, reader.line_number)
            _check_scores(fields[SCORES], sample, path, reader.line_number)
            key = SEPARATOR.join([*fields[: TARGET + 1], b""])
            sample.is_sorted = sample.is_sorted and key >= previous
            previous = key
            sample.lines += 1
            if fields[SOURCE] != source:
                source = fields[SOURCE]
                if fields[SOURCE].rstrip().endswith(b"[X]"):
                    expected = "phrases (rules with non-terminals are not taken)"
                    raise FormatError(path, expected, shown(line), reader.line_number)
                current = None
                if 0 < len(tokens(source)) <= LONGEST:
                    seen += 1
                    place = len(drawn) if len(drawn) < count else generator.randrange(seen)
                    if place < count:
                        current = []
                        drawn[place : place + 1] = [current]
            if current is not None:
                current.append((reader.line_number, line))
    if not sample.lines:
        raise DataError(f"{path}: expected lines of a phrase table, found an empty file")
    for line_number, line in sorted(line for group in drawn for line in group):
        _add(sample, line, path, line_number)
    return sample


def _check_scores(field_: bytes, sample: TableSample, path: str | Path, line_number: int) -> None:
    count = len(field_.split())
    if not sample.lines:
        sample.scores = count
    if count != sample.scores or not count:
        expected = f"{sample.scores or 'some'} scores" + (" as in line 1" if sample.lines else "")
        raise FormatError(path, expected, f"{count}", line_number)


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
