"""n-gram models in the ARPA format: their order, and the words that they know."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.model_files import file_of
from moses_feature.doctor.texts import is_factored
from moses_feature.errors import MosesFeatureError
from moses_feature.moses.ini import Feature, MosesIni
from moses_feature.moses.language_model import is_binary
from moses_feature.moses.lines import LineReader

MOST_UNKNOWN = 0.1
"""Share of reference words that a language model of the same text hardly ever lacks."""
_NUMBERS = tuple(b"%c" % digit for digit in b"-0123456789")
_SECTION = re.compile(rb"\\([0-9]+)-grams:")
_COUNT = re.compile(rb"ngram ([0-9]+)=\s*([0-9]+)")


@dataclass(frozen=True)
class ArpaModel:
    """What is in an ARPA file.

    Attributes:
        counts: n-grams of each order that its head promises.
        found: those that are there.
        words: that it knows.
        is_whole: it ends as it should.
    """

    counts: dict[int, int]
    found: dict[int, int]
    words: frozenset[bytes]
    is_whole: bool

    @property
    def order(self) -> int:
        """The length of its longest n-grams."""
        return max(self.counts)

    @property
    def lacks(self) -> str | None:
        """What is missing from the file; None if it is whole."""
        for n in sorted({*self.counts, *self.found}):
            promised, found = self.counts.get(n, 0), self.found.get(n, 0)
            if found != promised:
                return f"{found:,} {n}-grams in place of {promised:,}"
        return None if self.is_whole else "no \\end\\"


def read_arpa(path: Path) -> ArpaModel | None:
    """Return what is in an ARPA file; None if it is something else."""
    counts: dict[int, int] = {}
    found: dict[int, int] = {}
    words = set()
    now = 0
    is_whole = False
    with LineReader(path) as reader:
        for line in reader:
            if now and line[:1] in _NUMBERS:
                found[now] += 1
                if now == 1:
                    words.add(line.rstrip(b"\r\n").split(b"\t")[1] if b"\t" in line else b"")
            elif section := _SECTION.match(line):
                now = int(section[1])
                found[now] = 0
            elif count := _COUNT.match(line):
                counts[int(count[1])] = int(count[2])
            elif line.startswith(b"\\end\\"):
                is_whole = True
            elif not counts and line.strip() and not line.startswith(b"\\data\\"):
                return None
    return ArpaModel(counts, found, frozenset(words), is_whole) if words and counts else None


def check_language_models(
    ini: MosesIni, references: Sequence[list[bytes]], say: Callable[[str], None]
) -> Iterator[Finding]:
    """Yield what is wrong with KenLM models in text format; binary ones are not looked into.

    `say` is told what was looked at.
    """
    for feature in ini.features:
        path = file_of(ini, feature.arguments.get("path", ""))
        if feature.kind == "KENLM" and path is not None and path.is_file():
            of_words = feature.arguments.get("factor", "0") == "0" and not is_factored(references)
            yield from _check_model(ini, feature, path, references if of_words else [], say)


def _check_model(
    ini: MosesIni,
    feature: Feature,
    path: Path,
    references: Sequence[list[bytes]],
    say: Callable[[str], None],
) -> Iterator[Finding]:
    try:
        if is_binary(path):
            say(f"{path}: a binary model, not looked into")
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
    say(f"{path}: order {model.order}, {len(model.words):,} words")
    if model.lacks:
        yield Finding(
            "problem",
            str(path),
            f"not whole: {model.lacks}",
            "Moses stops while it reads the model",
            "make the model again: writing it has failed, or the file was cut",
        )
    said = feature.arguments.get("order")
    if said is not None and said != str(model.order):
        yield Finding(
            "warning",
            f"{ini.path} at line {feature.line_number}",
            f"order={said}, but {path} is of order {model.order}",
            "KenLM takes the order of the file; scripts that read the ini take the other",
            f"write order={model.order}",
        )
    yield from _unknown_words(path, model, references)


def _unknown_words(
    path: Path, model: ArpaModel, references: Sequence[list[bytes]]
) -> Iterator[Finding]:
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
