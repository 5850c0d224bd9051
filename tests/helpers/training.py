"""Something small to train on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from moses_feature.phrases.settings import Sizes

TINY = Sizes(hidden=11, embedding=5, maxout=7, rank=3)


def write_pairs(path: Path, count: int, longest: int = 5, words: int = 7) -> Path:
    """Write pairs whose target is the source backwards, or as it is after the word `copy`."""
    generator = np.random.default_rng(11)
    lines = set()
    while len(lines) < count:
        phrase = [f"w{w}" for w in generator.integers(0, words, generator.integers(1, longest + 1))]
        lines.add(f"copy {' '.join(phrase)}\t{' '.join(phrase)}\n")
        lines.add(f"{' '.join(phrase)}\t{' '.join(reversed(phrase))}\n")
    path.write_text("".join(sorted(lines)))
    return path
