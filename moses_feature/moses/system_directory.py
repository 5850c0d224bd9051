"""The files of a system directory, as `moses-feature system build` writes it."""

from __future__ import annotations

from pathlib import Path

SYSTEM, INI, FOLDS = "system.json", "moses.ini", "folds.txt"
"""What it was built of, the ini, and the fold of each line of the text, counted from 1."""


def fold_directory(system: Path, fold: int) -> Path:
    """Return the directory of the system without a fold (counted from 0)."""
    return system / f"fold-{fold + 1}"
