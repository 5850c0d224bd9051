"""What a binary table says of itself: that it is one, and how many scores it has."""

from __future__ import annotations

import re
from pathlib import Path

from moses_feature.errors import FormatError
from moses_feature.moses.lines import LineReader

DESCRIPTIONS = {
    "ProbingPT": ("config", re.compile(r"^num_scores\t([0-9]+)$", re.MULTILINE)),
    "PhraseDictionaryOnDisk": ("Misc.dat", re.compile(r"^NumScores ([0-9]+)$", re.MULTILINE)),
}
"""By the class in moses.ini: the file in the folder, and what it says of scores."""


def score_count(feature: str, path: Path) -> int | None:
    """Return how many scores a binary table has; None where it does not say so.

    Args:
        feature: the class in moses.ini that reads it.
        path: of the file or folder.

    Raises:
        FormatError: it is no such table.
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
    with path.open("rb") as file:
        start = file.read(2)
    if start == b"\x1f\x8b":
        with LineReader(path) as reader:
            return b" ||| " in next(iter(reader), b"")
    with path.open("rb") as file:
        line = file.readline(1 << 20)
    return b" ||| " in line and b"\0" not in line
