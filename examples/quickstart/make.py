"""Make the quickstart data: a corpus, its phrase table, a language model and a moses.ini.

    python examples/quickstart/make.py [--seed N] [--directory DIR]

Takes a few seconds. The same seed gives the same files.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from grammar import Grammar, Pair
from system import write, write_system

SIZES = {"train": 3000, "dev": 250, "test": 600}
DROPPED_LINKS = 0.1
WRONG_LINKS = 0.05
LANGUAGE_MODEL_ORDER = 3


def with_noise(sentence: Pair, generator: random.Random) -> Pair:
    """Drop and add links, as a statistical aligner would, so that some phrase pairs are wrong."""
    links = {link for link in sentence.links if generator.random() >= DROPPED_LINKS}
    for i in range(len(sentence.english)):
        if generator.random() < WRONG_LINKS:
            links.add((i, generator.randrange(len(sentence.french))))
    return Pair(sentence.english, sentence.french, frozenset(links))


def links_of(sentence: Pair) -> str:
    """Return the links as Moses' training writes them."""
    return " ".join(f"{source}-{target}" for source, target in sorted(sentence.links))


def make(directory: Path, seed: int) -> None:
    """Write all files of the example to a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    generator = random.Random(seed)
    grammar = Grammar(generator)
    corpus = {part: [grammar.sentence() for _ in range(size)] for part, size in SIZES.items()}
    for part, sentences in corpus.items():
        write(directory / f"{part}.en", [" ".join(sentence.english) for sentence in sentences])
        write(directory / f"{part}.fr", [" ".join(sentence.french) for sentence in sentences])
    aligned = [with_noise(sentence, generator) for sentence in corpus["train"]]
    write(directory / "aligned.grow-diag-final-and", [links_of(sentence) for sentence in aligned])
    french = [sentence.french for sentence in corpus["train"]]
    write_system(directory, aligned, "lm.fr.arpa", french, LANGUAGE_MODEL_ORDER, distortion_limit=6)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent / "data")
    arguments = parser.parse_args()
    make(arguments.directory, arguments.seed)
