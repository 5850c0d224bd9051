"""Moses' programs: there, and with permission to run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from moses_feature.doctor.finding import Finding

PROGRAMS = ("moses", "mert", "extractor", "kbmira", "pro", "CreateProbingPT")


def check_programs(folder: Path) -> Iterator[Finding]:
    """Yield which programs of Moses in a folder cannot be run."""
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
