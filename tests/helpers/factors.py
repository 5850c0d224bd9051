"""A system whose target words have one factor or two."""

from __future__ import annotations

from pathlib import Path

from moses_feature.building.language_model import estimate
from moses_feature.decoder.system import System
from moses_feature.moses.ini import MosesIni

TEXT = [b"A B C", b"B A", b"C C A B", b"A C", b"D B A C"]
TABLE = """\
a ||| A|x ||| 0.5
a ||| A|y ||| 0.4
a ||| D|x ||| 0.1
a b ||| A|x B|x ||| 0.3
b ||| B|x ||| 0.6
b ||| C|y ||| 0.3
c ||| C|y ||| 0.7
"""
INI = """\
[input-factors]
0
[mapping]
0 T 0
[feature]
UnknownWordPenalty
WordPenalty
PhraseDictionaryMemory name=TM num-features=1 path={folder}/table input-factor=0 \
output-factor={factors}
KENLM name=LM0 factor=0 order=3 path={folder}/lm0
{models}
[weight]
UnknownWordPenalty0= 1
WordPenalty0= -0.5
TM= 0.4
LM0= {first}
{weights}
"""


def write_model(path: Path, sentences: list[bytes]) -> None:
    path.write_bytes(b"".join(estimate([line.split() for line in sentences], 3).arpa()))


def system(folder: Path, table: str, first: float, second: float | None) -> System:
    """Write and read a system; with the weight of a second model it has two factors."""
    folder.mkdir(exist_ok=True)
    (folder / "table").write_text(table)
    write_model(folder / "lm0", TEXT)
    two = second is not None
    ini = INI.format(
        folder=folder,
        factors="0,1" if two else "0",
        models=f"KENLM name=LM1 factor=1 order=3 path={folder}/lm1" if two else "",
        first=first,
        weights=f"LM1= {second}" if two else "",
    )
    (folder / "ini").write_text(ini)
    return System.of_ini(MosesIni.read(folder / "ini"))
