"""n-gram models: whether KenLM reads them, their order, and the words that they know."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.model_files import file_read_by
from moses_feature.doctor.texts import is_factored
from moses_feature.moses.ini import Feature, MosesIni
from moses_feature.moses.language_model import is_binary, load_kenlm
from moses_feature.moses.lines import LineReader
from moses_feature.runtime.errors import MosesFeatureError

MOST_UNKNOWN = 0.1
"""Share of reference words that a language model of the same text hardly ever lacks."""
_NUMBERS = tuple(b"%c" % digit for digit in b"-0123456789")
_SECTION = re.compile(rb"\\([0-9]{1,9})-grams:")
_COUNT = re.compile(rb"ngram ([0-9]{1,9})=\s*([0-9]{1,18})\s")


@dataclass(frozen=True)
class ArpaCounts:
    """How many n-grams of each order are in an ARPA file.

    Attributes:
        promised: by its head.
        found: in its sections.
        is_whole: it ends as it should.
    """

    promised: dict[int, int]
    found: dict[int, int]
    is_whole: bool

    @property
    def lacks(self) -> str | None:
        """What is missing from the file, or too much; None if it is whole."""
        for n in sorted({*self.promised, *self.found}):
            promised, found = self.promised.get(n), self.found.get(n)
            if found is None:
                return f"no {n}-grams in place of {promised:,}"
            if promised is None:
                return f"{found:,} {n}-grams that its head does not promise"
            if found != promised:
                return f"{found:,} {n}-grams in place of {promised:,}"
        return None if self.is_whole else "no \\end\\"


def count_arpa(path: Path) -> ArpaCounts | None:
    """Count the n-grams of an ARPA file; return None if it is something else.

    Raises:
        MosesFeatureError: it cannot be read.
    """
    promised: dict[int, int] = {}
    found: dict[int, int] = {}
    now = None
    is_whole = False
    with LineReader(path) as reader:
        for line in reader:
            if now is not None and line[:1] in _NUMBERS:
                found[now] += 1
            elif section := _SECTION.match(line):
                now = int(section[1])
                found[now] = 0
            elif count := _COUNT.match(line):
                promised[int(count[1])] = int(count[2])
            elif line.startswith(b"\\end\\"):
                is_whole = True
            elif not promised and line.strip() and not line.startswith(b"\\data\\"):
                return None
    return ArpaCounts(promised, found, is_whole)


def check_language_models(
    ini: MosesIni, references: Sequence[list[bytes]], say: Callable[[str], None]
) -> Iterator[Finding]:
    """Yield what is wrong with models for KenLM, which has the last word.

    `say` is told what was looked at.
    """
    for feature in ini.features:
        path = file_read_by(ini, feature)
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
        counts = None if is_binary(path) else count_arpa(path)
        if counts is not None and counts.lacks:  # KenLM might reserve memory for what is not there
            yield Finding(
                "problem",
                str(path),
                f"not whole: {counts.lacks}",
                "Moses stops while it reads the model",
                "make the model again: writing it has failed, or the file was cut",
            )
            return
        model = load_kenlm(path, lazy=True)
    except MosesFeatureError as error:
        yield Finding(
            "problem",
            str(path),
            str(error).removeprefix(f"{path}: "),
            "Moses, which reads it by KenLM, stops",
            "make the model again, with lmplz; longer n-grams than KenLM was built for need "
            "another KenLM, here and in Moses (MAX_ORDER)",
        )
        return
    say(f"{path}: order {model.order}")
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


def _unknown_words(path: Path, model: Any, references: Sequence[list[bytes]]) -> Iterator[Finding]:
    words = [word for sentence in references for word in sentence]
    unknown = sum(word not in model for word in words)
    if words and unknown > MOST_UNKNOWN * len(words):
        yield Finding(
            "warning",
            str(path),
            f"{100 * unknown / len(words):.0f}% of the words of the references are unknown to it",
            "its scores hardly tell good translations from bad ones",
            "train it on text that is tokenised, cased and escaped like the table's target side",
        )
