"""Models that rescore n-best lists, as they are named: a path, perhaps with a mark before it.

`mbr:PATH` is the MBR feature of a network; other marks are those of features that packages add
(`moses_feature.rescoring.features`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

MBR = "mbr"
"""Marks a network against whose own translations a feature compares."""
_OLD_MBR = "own"
"""Its name in 0.2."""
_MARKED = re.compile("([a-z][a-z0-9-]*):(.*)", re.DOTALL)


def split_mark(model: str) -> tuple[str, str]:
    """Return the mark of a model, empty if it has none, and its path."""
    found = _MARKED.fullmatch(model)
    if found is None or Path(model).exists():
        return "", model
    mark, path = found.groups()
    return (MBR if mark == _OLD_MBR else mark), path


def with_path(model: str, change: Callable[[str], str]) -> str:
    """Return a model with another path; it keeps its mark, if it has one."""
    mark, path = split_mark(model)
    changed = change(path) if path else ""
    return f"{mark}:{changed}" if mark else changed
