"""n-gram models in the ARPA format: their order, and the words that they know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.model_files import file_of
from moses_feature.errors import MosesFeatureError
from moses_feature.moses.ini import Feature, MosesIni
from moses_feature.moses.language_model import is_binary
from moses_feature.moses.lines import LineReader

MOST_UNKNOWN = 0.1
"""Share of reference words that a language model of the same text hardly ever lacks."""
_COUNT = re.compile(rb"ngram ([0-9]+)=\s*([0-9]+)")


@dataclass(frozen=True)
class ArpaModel:
    """What an ARPA file begins with: its order and its words."""

    order: int
    words: frozenset[bytes]


def read_arpa(path: Path) -> ArpaModel | None:
    """Return the head of an ARPA file; None if it is something else."""
    order, words = 0, set()
    in_words = False
    with LineReader(path) as reader:
        for line in reader:
            if count := _COUNT.match(line):
                order = max(order, int(count[1]))
            elif line.startswith(b"\\1-grams:"):
                in_words = True
            elif in_words and line.startswith(b"\\"):
                break
            elif in_words and line.strip():
                fields = line.rstrip(b"\r\n").split(b"\t")
                if len(fields) < 2:  # log probability and word
                    return None
                words.add(fields[1])
            elif not order and line.strip() and not line.startswith(b"\\data\\"):
                return None
    return ArpaModel(order, frozenset(words)) if words else None


def check_language_models(
    ini: MosesIni, references: Sequence[Sequence[bytes]]
) -> Iterator[Finding]:
    """Yield what is wrong with KenLM models in text format; binary ones are not looked into."""
    for feature in ini.features:
        path = file_of(ini, feature.arguments.get("path", ""))
        if feature.kind == "KENLM" and path is not None and path.is_file():
            yield from _check_model(ini, feature, path, references)


def _check_model(
    ini: MosesIni, feature: Feature, path: Path, references: Sequence[Sequence[bytes]]
) -> Iterator[Finding]:
    where = f"{ini.path} at line {feature.line_number}"
    try:
        if is_binary(path):
            return
        model = read_arpa(path)
    except MosesFeatureError as error:
        yield Finding("problem", str(path), str(error), "Moses stops", "make the model again")
        return
    if model is None:
        yield Finding(
            "problem",
            str(path),
            "neither an ARPA file nor a binary model of KenLM",
            "Moses stops",
            "make it with lmplz, and build_binary if you like",
        )
        return
    said = feature.arguments.get("order")
    if said is not None and said != str(model.order):
        yield Finding(
            "warning",
            where,
            f"order={said}, but {path} is of order {model.order}",
            "KenLM takes the order of the file; scripts that read the ini take the other",
            f"write order={model.order}",
        )
    words = [word for sentence in references for word in sentence]
    unknown = sum(word not in model.words for word in words)
    if words and unknown > MOST_UNKNOWN * len(words):
        yield Finding(
            "warning",
            str(path),
            f"{100 * unknown / len(words):.0f}% of the words of the references are unknown to it",
            "its scores hardly tell good translations from bad ones",
            "train it on text that is tokenised, cased and escaped like the table's target side",
        )
