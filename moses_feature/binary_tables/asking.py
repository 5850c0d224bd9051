"""A binary table, asked for phrases through the very decoder that will read it.

The decoder translates each phrase by an ini of the table alone, where a penalty makes the
translations of one phrase the best ones; their scores stand in the n-best list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from moses_feature.arrays import Floats
from moses_feature.binary_tables.sample import Phrase
from moses_feature.errors import FormatError, shown
from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest import EXPECTED, VALUES, NbestLine, labelled_values
from moses_feature.moses.programs import run_program

TABLE = "AskedTable"
TOLERANCE = 2e-4
"""Of a natural log: Moses prints six significant digits, and keeps 32-bit floats."""
NO_LIMIT = " table-limit=1000000"
"""Of targets: with 0, text tables give all of them, and ProbingPT none."""
ONE_PHRASE = -1000.0
"""Weight of the phrase penalty."""

Targets = Mapping[Phrase, Sequence[Floats]]


def table_line(feature: str, path: Path, scores: int, name: str) -> str:
    """Return the line of a table in moses.ini."""
    return f"{feature} name={name} num-features={scores} path={path} input-factor=0 output-factor=0"


def ask(
    moses: Path, line: str, scores: int, targets: Mapping[Phrase, Targets], scratch: Path
) -> dict[Phrase, dict[Phrase, list[Floats]]]:
    """Return the targets that the decoder finds for source phrases, with their scores.

    Args:
        moses: the decoder.
        line: of the table in moses.ini, named `TABLE`.
        scores: of the table.
        targets: what is expected; says how many to ask for.
        scratch: a folder for files.

    Raises:
        MosesFeatureError: the decoder fails; with its last words.
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
    for number, words, values in _one_phrase_translations(lists):
        found[sources[number]].setdefault(words, []).append(values)
    return found


def _one_phrase_translations(lists: Path) -> Iterator[tuple[int, Phrase, Floats]]:
    with LineReader(lists) as reader:
        for line in reader:
            try:
                parsed = NbestLine.parse(line.rstrip(b"\n"))
                values = labelled_values(parsed.fields[VALUES])
            except ValueError:
                raise FormatError(lists, EXPECTED, shown(line), reader.line_number) from None
            if values.get("PhrasePenalty0") == [1.0]:
                yield parsed.sentence, tuple(parsed.words), np.array(values.get(TABLE, []))


def differences(expected: Mapping[Phrase, Targets], found: Mapping[Phrase, Targets]) -> list[str]:
    """Say which lines of the text table the binary one does not have, or with other scores."""
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
