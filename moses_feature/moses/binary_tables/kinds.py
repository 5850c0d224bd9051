"""Moses' binary formats of phrase tables: their programs, and the metadata in the tables.

| kind | program | source |
|---|---|---|
| probing | `CreateProbingPT` | `probingpt/CreateProbingPT.cpp` |
| compact | `processPhraseTableMin` | `misc/processPhraseTableMin.cpp` |
| ondisk | `CreateOnDiskPt` | `OnDiskPt/Main.cpp` |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from moses_feature.moses.lines import LineReader
from moses_feature.runtime.errors import FormatError, MosesFeatureError

DESCRIPTIONS = {
    "ProbingPT": ("config", re.compile(r"^num_scores\t([0-9]{1,9})$", re.MULTILINE)),
    "PhraseDictionaryOnDisk": ("Misc.dat", re.compile(r"^NumScores ([0-9]{1,9})$", re.MULTILINE)),
}
"""By the class in moses.ini: the file in the folder that gives the number of scores, and where."""


PROBING_VERSION = 15
"""API_VERSION of the probing tables of Moses' current source (`probingpt`)."""


def probing_version(folder: Path) -> int | None:
    """Return the API_VERSION of a probing table, None if it gives none."""
    content = (folder / "config").read_text(errors="replace")
    said = re.search(r"^API_VERSION\t([0-9]{1,9})$", content, re.MULTILINE)
    return int(said[1]) if said else None


def score_count(feature: str, path: Path) -> int | None:
    """Return the number of scores of a binary table; None if it does not give it.

    Args:
        feature: the class in moses.ini that reads it.
        path: the file or folder.

    Raises:
        FormatError: the path is no such table.
    """
    if feature in DESCRIPTIONS:
        name, pattern = DESCRIPTIONS[feature]
        file = path / name
        if not file.is_file():
            raise FormatError(path, f"a table for {feature}, with a file {name} in it", "none")
        said = pattern.search(file.read_text(errors="replace"))
        if said is None:
            raise FormatError(file, "the number of scores", "none")
        return int(said[1])
    if not path.is_file():
        raise FormatError(path, f"a table for {feature}", "a folder")
    if is_text_table(path):
        raise FormatError(path, f"a table for {feature}", "a text table")
    return None


def is_text_table(path: Path) -> bool:
    """Return whether a file is a phrase table in text format, by its first line."""
    try:
        with LineReader(path) as reader:
            line = next(iter(reader), b"")
    except MosesFeatureError:
        return False
    return b" ||| " in line and b"\0" not in line


@dataclass(frozen=True)
class Job:
    """A job for a program: the table, its number of scores, and where to write."""

    table: Path
    scores: int
    output: Path
    temporary: Path
    threads: int


@dataclass(frozen=True)
class Kind:
    """A binary format.

    Attributes:
        name: its name for users.
        feature: the class in moses.ini.
        programs: possible names of the program that writes it.
        options: the arguments of the program.
        suffix: the suffix that the program appends to the output's name.
        missing: how to build Moses with the program.
        dropped: the fields of a table that it drops.
    """

    name: str
    feature: str
    programs: tuple[str, ...]
    options: Callable[[Job], list[str]]
    suffix: str
    missing: str
    dropped: str


def _probing(job: Job) -> list[str]:
    # --num-scores is 4 by default. With --log-prob, logs are taken and floored here, once.
    return [
        *("--input-pt", str(job.table), "--output-dir", str(job.output)),
        *("--num-scores", str(job.scores), "--log-prob"),
    ]


def _compact(job: Job) -> list[str]:
    # The rank score is p(target | source), column 2; the network's columns come behind it.
    return [
        *("-in", str(job.table), "-out", str(job.output), "-nscores", str(job.scores)),
        *("-rankscore", str(min(2, job.scores - 1)), "-T", str(job.temporary)),
        *("-threads", str(job.threads)),
    ]


def _on_disk(job: Job) -> list[str]:
    # One factor on either side; no limit on targets (0), sorted by column 2.
    sort_by = str(min(2, job.scores - 1))
    return ["1", "1", str(job.scores), "0", sort_by, str(job.table), str(job.output)]


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "probing",
            "ProbingPT",
            ("CreateProbingPT", "CreateProbingPT2"),
            _probing,
            "",
            missing="any build of Moses since 2017 has it",
            dropped="sparse scores, counts and properties",
        ),
        Kind(
            "compact",
            "PhraseDictionaryCompact",
            ("processPhraseTableMin",),
            _compact,
            ".minphr",
            missing="built with bjam --with-cmph",
            dropped="sparse scores, counts and properties",
        ),
        Kind(
            "ondisk",
            "PhraseDictionaryOnDisk",
            ("CreateOnDiskPt",),
            _on_disk,
            "",
            missing="any build of Moses has it",
            dropped="counts and properties",
        ),
    )
}
"""All kinds by name."""
