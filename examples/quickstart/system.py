"""The files of a phrase-based system: a phrase table, a language model, and a moses.ini."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from grammar import Pair
from language_model import arpa
from phrase_extraction import phrase_table

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
{limit}

# feature functions
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={table} \
input-factor=0 output-factor=0
{distortion}KENLM name=LM0 factor=0 path={language_model} order={order}

# dense weights for feature functions
[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
{weight}LM0= 0.5
"""


def write_system(
    directory: Path,
    aligned: Sequence[Pair],
    language_model_name: str,
    text: Sequence[Sequence[str]],
    order: int,
    distortion_limit: int,
) -> None:
    """Write a system of aligned sentences and a text; without reordering where the limit is 0."""
    table, language_model = directory / "phrase-table.gz", directory / language_model_name
    table.write_bytes(gzip.compress(b"".join(phrase_table(aligned)), mtime=0))
    language_model.write_text(arpa(text, order), encoding="utf-8")
    ini = INI.format(
        table=table.absolute(),
        language_model=language_model.absolute(),
        order=order,
        limit=distortion_limit,
        distortion="Distortion\n" if distortion_limit else "",
        weight="Distortion0= 0.3\n" if distortion_limit else "",
    )
    (directory / "moses.ini").write_text(ini, encoding="utf-8")


def write(path: Path, lines: list[str]) -> None:
    """Write lines of text."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
