"""Make the data of the example: words in old and new spelling, a table of letters, a moses.ini.

    python examples/normalisation/make.py [--seed N] [--directory DIR]

Takes some seconds. The same seed gives the same files. Words of the test set are not in the
training set.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "quickstart"))

import phrase_extraction
from language_model import arpa
from spelling import old_spelling, word

SIZES = {"train": 4000, "dev": 400, "test": 800}
LONGEST_PHRASE = 10
LANGUAGE_MODEL_ORDER = 6

INI = """\
[input-factors]
0

[mapping]
0 T 0

[distortion-limit]
0

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={table} \
input-factor=0 output-factor=0
KENLM name=LM0 factor=0 path={language_model} order={order}

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
LM0= 0.5
"""


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
            text = "".join(f"{' '.join(of_word)}\n" for of_word in letters)
            (directory / f"{part}.{side}").write_text(text, encoding="utf-8")
    phrase_extraction.MAX_LENGTH = LONGEST_PHRASE
    lines = phrase_extraction.phrase_table(pairs["train"])
    table, language_model = directory / "phrase-table.gz", directory / "lm.new.arpa"
    table.write_bytes(gzip.compress(b"".join(lines), mtime=0))
    modern = [pair.french for pair in pairs["train"]]
    language_model.write_text(arpa(modern, LANGUAGE_MODEL_ORDER), encoding="utf-8")
    ini = INI.format(
        table=table.absolute(),
        language_model=language_model.absolute(),
        order=LANGUAGE_MODEL_ORDER,
    )
    (directory / "moses.ini").write_text(ini, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent / "data")
    arguments = parser.parse_args()
    make(arguments.directory, arguments.seed)
