"""Make the quickstart data: a corpus, its phrase table, a language model and a moses.ini.

    python examples/quickstart/make.py [--seed N] [--directory DIR]

Takes about three seconds. The same seed gives the same files.
"""

from __future__ import annotations

import argparse
import gzip
import random
from pathlib import Path

from grammar import Grammar, Pair
from language_model import arpa
from phrase_extraction import phrase_table

SIZES = {"train": 3000, "dev": 250, "test": 250}
DROPPED_LINKS = 0.03
WRONG_LINKS = 0.02
LANGUAGE_MODEL_ORDER = 3

INI = """\
#########################
### MOSES CONFIG FILE ###
#########################

# input factors
[input-factors]
0

# mapping steps
[mapping]
0 T 0

[distortion-limit]
6

# feature functions
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={table} \
input-factor=0 output-factor=0
Distortion
KENLM name=LM0 factor=0 path={language_model} order={order}

# dense weights for feature functions
[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
Distortion0= 0.3
LM0= 0.5
"""


def with_noise(sentence: Pair, generator: random.Random) -> Pair:
    """Drop and add links, as a statistical aligner would, so that some phrase pairs are wrong."""
    links = {link for link in sentence.links if generator.random() >= DROPPED_LINKS}
    for i in range(len(sentence.english)):
        if generator.random() < WRONG_LINKS:
            links.add((i, generator.randrange(len(sentence.french))))
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
    aligned = [with_noise(sentence, generator) for sentence in corpus["train"]]
    table = directory / "phrase-table.gz"
    table.write_bytes(gzip.compress(b"".join(phrase_table(aligned)), mtime=0))
    language_model = directory / "lm.fr.arpa"
    french = [sentence.french for sentence in corpus["train"]]
    language_model.write_text(arpa(french, LANGUAGE_MODEL_ORDER), encoding="utf-8")
    ini = INI.format(
        table=table.absolute(),
        language_model=language_model.absolute(),
        order=LANGUAGE_MODEL_ORDER,
    )
    (directory / "moses.ini").write_text(ini, encoding="utf-8")


def write(path: Path, lines: list[str]) -> None:
    """Write lines of text."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent / "data")
    arguments = parser.parse_args()
    make(arguments.directory, arguments.seed)
