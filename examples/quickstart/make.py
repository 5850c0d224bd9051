"""Make the quickstart data: a corpus, and its word alignment with the errors of an aligner.

    python examples/quickstart/make.py [--seed N] [--directory DIR]

Takes a second. The same seed gives the same files.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Set
from pathlib import Path

from files import links_of, write
from grammar import Grammar, Pair

SIZES = {"train": 3000, "dev": 500, "test": 1000}
DROPPED_LINKS, WRONG_LINKS = 0.06, 0.03
"""Shares of the links that are left out, and of the words that are linked to another word, too."""
RARE, COLLECTED = 5, 0.5
"""A word that occurs so often at most is rare; the share of rare words that collect neighbours."""


def with_noise(sentence: Pair, rare: Set[str], generator: random.Random) -> Pair:
    """Drop and add links, as a statistical aligner would, so that some phrase pairs are wrong.

    Rare words are linked to the neighbours of their translations, too: the garbage collection of
    the IBM models (Moore 2004).
    """
    words = len(sentence.french)
    links = {link for link in sentence.links if generator.random() >= DROPPED_LINKS}
    for i, word in enumerate(sentence.english):
        if generator.random() < WRONG_LINKS:
            links.add((i, generator.randrange(words)))
        if word in rare and generator.random() < COLLECTED:
            beside = {j + step for k, j in links if k == i for step in (-1, 1)} & {*range(words)}
            links |= {(i, j) for j in sorted(beside) if generator.random() < 0.5}
    return Pair(sentence.english, sentence.french, frozenset(links))


def make(directory: Path, seed: int) -> None:
    """Write all files of the example to a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    generator = random.Random(seed)
    grammar = Grammar(generator)
    corpus = {part: [grammar.sentence() for _ in range(size)] for part, size in SIZES.items()}
    for part, sentences in corpus.items():
        write(directory / f"{part}.en", [" ".join(sentence.english) for sentence in sentences])
        write(directory / f"{part}.fr", [" ".join(sentence.french) for sentence in sentences])
    counts = Counter(word for sentence in corpus["train"] for word in sentence.english)
    rare = {word for word, count in counts.items() if count <= RARE}
    links = [links_of(with_noise(sentence, rare, generator)) for sentence in corpus["train"]]
    write(directory / "aligned.grow-diag-final-and", links)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent / "data")
    arguments = parser.parse_args()
    make(arguments.directory, arguments.seed)
