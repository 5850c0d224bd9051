"""A finding of the doctor, such as a missing program of Moses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MOST_LINES = 2_000_000
"""The default number of lines to read of each text table."""
Severity = Literal["problem", "warning", "note"]
"""A problem makes results wrong or runs fail; a warning may; a note does not."""


@dataclass(frozen=True)
class Finding:
    """A finding.

    Attributes:
        severity: how serious it is.
        where: the file, and the line if there is one.
        what: the fault.
        effect: its consequence.
        remedy: how to mend it.
    """

    severity: Severity
    where: str
    what: str
    effect: str
    remedy: str

    def __str__(self) -> str:
        return (
            f"{self.severity}: {self.where}: {self.what}\n  causes: {self.effect}\n"
            f"  mend:   {self.remedy}"
        )


PROGRAMS = ("moses", "mert", "extractor", "kbmira", "pro", "CreateProbingPT")


def check_programs(folder: Path) -> Iterator[Finding]:
    """Yield the programs of Moses in a folder that cannot be run."""
    if not any((folder / name).exists() for name in PROGRAMS):
        yield Finding(
            "problem",
            str(folder),
            f"none of the programs {', '.join(PROGRAMS)}",
            "tuning with real Moses stops",
            "give the folder of Moses that has bin/moses, or bin itself",
        )
    for name in PROGRAMS:
        program = folder / name
        if program.is_file() and not os.access(program, os.X_OK):
            yield Finding(
                "problem",
                str(program),
                "a program without permission to run it",
                "mert-moses.pl says `command not found`, often after its first full decoding",
                f"chmod a+x {program}",
            )
