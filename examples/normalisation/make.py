"""Make the data of the example: words in old and new spelling, and which letters are linked.

    python examples/normalisation/make.py [--seed N] [--directory DIR]

Takes a second. The same seed gives the same files. Words of the test set are not in the
training set.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "quickstart"))

from files import links_of, write
from spelling import old_spelling, word

SIZES = {"train": 4000, "dev": 400, "test": 800}


def make(directory: Path, seed: int) -> None:
    """Write all files of the example to a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    generator = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < sum(SIZES.values()):
        words[word(generator)] = None
    rest = iter(words)
    pairs = {}
    for part, size in SIZES.items():
        pairs[part] = [old_spelling(next(rest), generator) for _ in range(size)]
        for side, letters in (
            ("old", [pair.english for pair in pairs[part]]),
            ("new", [pair.french for pair in pairs[part]]),
        ):
            write(directory / f"{part}.{side}", [" ".join(of_word) for of_word in letters])
    write(directory / "aligned", [links_of(pair) for pair in pairs["train"]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent / "data")
    arguments = parser.parse_args()
    make(arguments.directory, arguments.seed)
