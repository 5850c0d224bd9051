"""Check a binary table by looking up some phrases with the decoder that will read it.

The source phrases are drawn at random from the text table. All of its lines are checked for content
that Moses' programs silently mangle, or fail on.

The decoder translates each phrase with an ini of this table alone. A penalty there ranks the
one-phrase translations first; their scores are read from the n-best list.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from moses_feature.moses.features import log_scores
from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import nbest_lines
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
from moses_feature.moses.programs import run_program
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import DataError, FormatError, shown

LONGEST = 50
"""The longest source phrase, in words, that is looked up."""

_NEGATIVE = re.compile(rb"(?<![eE])-")

Phrase = tuple[bytes, ...]


@dataclass
class TableSample:
    """A random sample of a table.

    Attributes:
        scores: the number of scores in each line.
        lines: the number of lines of the table.
        drawn: the lines of the drawn source phrases, as in the table and in its order.
        targets: for each drawn source phrase and each target, the scores of its lines, natural logs
            as Moses reads them.
    """

    scores: int = 0
    lines: int = 0
    drawn: list[bytes] = field(default_factory=list)
    targets: dict[Phrase, dict[Phrase, list[Floats]]] = field(default_factory=dict)


def sample_table(path: str | Path, count: int, seed: int = 1) -> TableSample:
    """Draw source phrases with equal probability; the lines of a phrase stand together.

    Raises:
        FormatError: a damaged line, another number of scores, a score that Moses cannot read, an
            empty phrase, rules, factors, an alignment outside the phrases, or lines that are not in
            the order of `LC_ALL=C sort`.
        DataError: the table has no line, or none that can be looked up.
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


TABLE = "AskedTable"
TOLERANCE = 2e-4
"""Tolerance of a natural log: Moses prints six significant digits and stores 32-bit floats."""
NO_LIMIT = " table-limit=1000000"
"""No limit on targets: with 0, text tables return all of them, but ProbingPT none."""
ONE_PHRASE = -1000.0
"""The weight of the phrase penalty, which favours one-phrase translations."""

Targets = Mapping[Phrase, Sequence[Floats]]


def table_line(feature: str, path: Path, scores: int, name: str) -> str:
    """Return the moses.ini line of a table."""
    return f"{feature} name={name} num-features={scores} path={path} input-factor=0 output-factor=0"


def ask(
    moses: Path, line: str, scores: int, targets: Mapping[Phrase, Targets], scratch: Path
) -> dict[Phrase, dict[Phrase, list[Floats]]]:
    """Return the targets that the decoder finds for source phrases, with their scores.

    Args:
        moses: the decoder.
        line: the moses.ini line of the table, named `TABLE`.
        scores: the number of scores of the table.
        targets: the expected targets, which determine how many to ask for.
        scratch: a folder for temporary files.

    Raises:
        MosesFeatureError: the decoder fails; with the end of its output.
    """
    ini, text, lists = scratch / "ask.ini", scratch / "ask.txt", scratch / "ask.nbest"
    weights = " ".join(["0"] * scores)
    ini.write_text(
        "[input-factors]\n0\n[mapping]\n0 T 0\n[distortion-limit]\n0\n[feature]\n"
        f"UnknownWordPenalty\nPhrasePenalty\n{line}{NO_LIMIT}\n[weight]\nUnknownWordPenalty0= 1\n"
        f"PhrasePenalty0= {ONE_PHRASE:g}\n{TABLE}= {weights}\n",
        errors="surrogateescape",
    )
    sources = list(targets)
    text.write_bytes(b"".join(b" ".join(source) + b"\n" for source in sources))
    most = max(map(len, targets.values()))
    longest = max(map(len, sources))
    run_program(
        [
            *(str(moses), "-config", str(ini), "-input-file", str(text)),
            *("-n-best-list", str(lists), str(2 * most + 10), "distinct"),
            *("-stack", str(10 * most + 1000), "-beam-threshold", "0"),
            *("-max-phrase-length", str(longest), "-threads", "1"),
        ],
        scratch / "ask.log",
    )
    found: dict[Phrase, dict[Phrase, list[Floats]]] = {source: {} for source in sources}
    with NbestReader(lists) as reader:
        for listed in nbest_lines(reader):
            values = listed.labelled()
            if values.get("PhrasePenalty0") == [1.0]:
                of_source = found[sources[listed.sentence]]
                of_table = np.array(values.get(TABLE, []))
                of_source.setdefault(tuple(listed.words), []).append(of_table)
    return found


def differences(expected: Mapping[Phrase, Targets], found: Mapping[Phrase, Targets]) -> list[str]:
    """Describe the lines of the text table that the binary one lacks, or has with other scores."""
    said = []
    for source, targets in expected.items():
        for target, lines in targets.items():
            there = found[source].get(target, [])
            pair = f"{_text(source)} ||| {_text(target)}"
            for values in lines:
                if not there:
                    said.append(f"{pair}: not found")
                elif not any(_close(values, other) for other in there):
                    said.append(f"{pair}: expected {_numbers(values)}, found {_numbers(there[0])}")
    return said


def _close(values: Floats, others: Floats) -> bool:
    return len(values) == len(others) and all(
        math.isclose(value, other, rel_tol=1e-5, abs_tol=TOLERANCE)
        for value, other in zip(values, others, strict=True)
    )


def _text(words: Phrase) -> str:
    return b" ".join(words).decode(errors="backslashreplace")


def _numbers(values: Floats) -> str:
    return " ".join(f"{value:.6g}" for value in values)
