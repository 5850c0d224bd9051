"""Moses' binary formats of phrase tables: who writes them, with which options.

| kind | program | source |
|---|---|---|
| probing | `CreateProbingPT` | `probingpt/CreateProbingPT.cpp` |
| compact | `processPhraseTableMin` | `misc/processPhraseTableMin.cpp` |
| ondisk | `CreateOnDiskPt` | `OnDiskPt/Main.cpp` |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    """What a program is to do: the table, how many scores it has, and where to write."""

    table: Path
    scores: int
    output: Path
    temporary: Path
    threads: int


@dataclass(frozen=True)
class Kind:
    """A binary format.

    Attributes:
        name: as users give it.
        feature: the class in moses.ini.
        programs: names of the one that writes it.
        options: its arguments.
        suffix: that it appends to the name of the output.
        missing: how Moses is built with the program.
        dropped: what of a table it does not keep.
    """

    name: str
    feature: str
    programs: tuple[str, ...]
    options: Callable[[Job], list[str]]
    suffix: str
    missing: str
    dropped: str


def _probing(job: Job) -> list[str]:
    # --num-scores is 4 by default. With --log-prob, logs are taken and floored once, here.
    return [
        *("--input-pt", str(job.table), "--output-dir", str(job.output)),
        *("--num-scores", str(job.scores), "--log-prob"),
    ]


def _compact(job: Job) -> list[str]:
    # The rank score is p(target | source), column 2: the columns of a network stand behind it.
    return [
        *("-in", str(job.table), "-out", str(job.output), "-nscores", str(job.scores)),
        *("-rankscore", str(min(2, job.scores - 1)), "-T", str(job.temporary)),
        *("-threads", str(job.threads)),
    ]


def _on_disk(job: Job) -> list[str]:
    # One factor on either side; no limit of targets (0), sorted by column 2.
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
