"""How many scores a phrase table in one of Moses' binary formats has, by its own description.

Follows `probingpt/CreateProbingPT.cpp` and `OnDiskPt/Main.cpp` of Moses.
"""

from __future__ import annotations

import re
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
