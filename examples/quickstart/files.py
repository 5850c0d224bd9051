"""Files of the examples: a sentence on each line, and its links."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from grammar import Pair


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines of text."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def links_of(sentence: Pair) -> str:
    """Return the links as Moses' training writes them."""
    return " ".join(f"{source}-{target}" for source, target in sorted(sentence.links))
