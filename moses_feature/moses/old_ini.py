"""The format of moses.ini before 2013, with [ttable-file] and [weight-t], made today's.

Follows `scripts/training/convert-moses-ini-to-v2.perl` of Moses. What that script would pass over,
or write as `UNKNOWN`, is refused by name; SRILM's models become KenLM's, which reads the same
files.
"""

from __future__ import annotations

import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from moses_feature.moses.phrase_table import NUMBER
from moses_feature.runtime.errors import FormatError, MosesFeatureError

OLD_SECTIONS = frozenset(("ttable-file", "lmodel-file", "weight-t", "weight-d", "weight-l"))
"""Sections that tell the old format."""
FILES = ("ttable-file", "distortion-file", "lmodel-file")
LIMITS = "ttable-limit"
WEIGHTS = ("weight-t", "weight-d", "weight-l", "weight-w")
REFUSED = (
    "generation-file",
    "target-word-insertion-feature",
    "source-word-deletion-feature",
    "word-translation-feature",
    "phrase-length-feature",
    "weight-file",
)
TABLES = {
    "0": "PhraseDictionaryMemory",
    "1": "PhraseDictionaryBinary",
    "6": "PhraseDictionaryMemory",
}
MODELS = {"0": "KENLM", "8": "KENLM", "9": "KENLM"}
"""Classes by the number of their implementation."""

Line = tuple[int, str]
"""A line and its number."""


def converted(path: str | Path) -> bytes:
    """Return the content of an old moses.ini in today's format.

    Raises:
        FormatError: a line that cannot be converted, or an ini of today's format.
        MosesFeatureError: the file cannot be read.
    """
    try:
        text = Path(path).read_bytes().removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    except OSError as error:
        raise MosesFeatureError(f"{path}: {error.strerror}") from error
    return _OldIni(str(path), text).converted().encode(errors="surrogateescape")


@dataclass
class _OldIni:
    """An ini of the old format, a section at a time."""

    path: str
    text: str
    found: dict[str, list[Line]] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)

    def converted(self) -> str:
        self._read()
        while self.kept and not self.kept[-1].strip():
            self.kept.pop()
        lines = [*self.kept, "", "[feature]", *self._features(), "", "[weight]"]
        return "\n".join([*lines, *self._weights(), ""])

    def _read(self) -> None:
        """Sort the lines into sections that are converted, and all others."""
        section: str | None = None
        for number, line in enumerate(self.text.split("\n"), 1):
            content = line.partition("#")[0].strip()
            if content.startswith("["):
                section = self._section(number, content)
                if section is not None:
                    self.found[section] = []
                    continue
            if section is None:
                self.kept.append(line.rstrip("\r"))
            elif content:
                self.found[section].append((number, content))
        if not self.found.get("ttable-file"):
            raise FormatError(self.path, "[ttable-file], an ini of the old format", "none")

    def _section(self, number: int, header: str) -> str | None:
        """Return the name of a section that is converted; None for others."""
        found = re.fullmatch(r"\[\s*([^\]]*?)\s*\]", header)
        if found is None:
            raise self._error(number, "the name of a section in brackets", header)
        name = found[1]
        if name in REFUSED or (name.startswith("weight-") and name not in WEIGHTS):
            expected = f"one of {', '.join((*FILES, *WEIGHTS))}, or another setting"
            raise self._error(number, expected, f"[{name}]")
        if name in self.found:
            raise self._error(number, f"[{name}] once", "it twice")
        return name if name in (*FILES, LIMITS, *WEIGHTS) else None

    def _error(self, number: int, expected: str, found: str) -> FormatError:
        return FormatError(self.path, expected, found, number)

    def _features(self) -> Iterator[str]:
        tables = list(self._entries("ttable-file", 5))
        limits = self.found.get(LIMITS, [])
        if len(limits) > len(tables):
            raise self._error(limits[-1][0], f"{len(tables)} lines in [{LIMITS}]", "more")
        yield from ("UnknownWordPenalty", "WordPenalty", "Distortion")
        for n, (number, *fields) in enumerate(tables):
            kind, source, target, count, file = fields
            self._check_factors(number, source, target)
            limit = f" table-limit={self._count(*limits[n])}" if n < len(limits) else ""
            yield (
                f"{self._class(number, kind, TABLES)} name=TranslationModel{n} "
                f"num-features={count} path={file} input-factor={source} output-factor={target}"
                f"{limit}"
            )
        for n, (number, *fields) in enumerate(self._entries("distortion-file", 4)):
            factors, kind, count, file = fields
            source, _, target = factors.partition("-")
            self._check_factors(number, source, target)
            # A model given the source phrase alone must not name a factor of the target.
            of_target = "" if "f" in kind.split("-") else f" output-factor={target}"
            yield (
                f"LexicalReordering name=LexicalReordering{n} num-features={count} type={kind} "
                f"input-factor={source}{of_target} path={file}"
            )
        for n, (number, *fields) in enumerate(self._entries("lmodel-file", 4)):
            kind, factor, order, file = fields
            yield (
                f"{self._class(number, kind, MODELS)} name=LM{n} factor={factor} path={file} "
                f"order={self._count(number, order)}"
            )

    def _entries(self, section: str, fields: int) -> Iterator[tuple[int, *tuple[str, ...]]]:
        """Yield the number and the fields of each line of a section."""
        for number, line in self.found.get(section, []):
            words = line.split()
            if len(words) != fields:
                raise self._error(number, f"{fields} fields in [{section}]", f"{len(words)}")
            yield number, *words

    def _check_factors(self, number: int, *factors: str) -> None:
        for of_side in factors:
            if not re.fullmatch(r"[0-9](,[0-9])*", of_side):
                raise self._error(number, "factors of both sides, such as 0", of_side or "none")

    def _class(self, number: int, kind: str, classes: dict[str, str]) -> str:
        if kind not in classes:
            raise self._error(number, f"an implementation of {', '.join(classes)}", kind)
        return classes[kind]

    def _weights(self) -> Iterator[str]:
        """Yield the weights of each feature, in the order in which the old format has them."""
        left = {section: self._values(section) for section in WEIGHTS}
        yield "UnknownWordPenalty0= 1"
        yield f"WordPenalty0= {self._taken(left, 'weight-w', 1)}"
        yield f"Distortion0= {self._taken(left, 'weight-d', 1)}"
        for n, (number, *fields) in enumerate(self._entries("ttable-file", 5)):
            count = self._count(number, fields[3])
            yield f"TranslationModel{n}= {self._taken(left, 'weight-t', count)}"
        for n, (number, *fields) in enumerate(self._entries("distortion-file", 4)):
            count = self._count(number, fields[2])
            yield f"LexicalReordering{n}= {self._taken(left, 'weight-d', count)}"
        for n, _ in enumerate(self._entries("lmodel-file", 4)):
            yield f"LM{n}= {self._taken(left, 'weight-l', 1)}"
        for section, values in left.items():
            if values:
                there = len(self._values(section))
                expected = f"{there - len(values)} in [{section}]"
                raise FormatError(self.path, expected, f"{there}")

    def _values(self, section: str) -> list[str]:
        """Return the weights of a section."""
        values = []
        for number, line in self.found.get(section, []):
            for value in line.split():
                if not (
                    NUMBER.fullmatch(value.encode(errors="surrogateescape"))
                    and math.isfinite(float(value))
                ):
                    raise self._error(number, "a finite number", value)
                values.append(value)
        return values

    def _count(self, number: int, text: str) -> int:
        if not re.fullmatch("[0-9]{1,6}", text):
            raise self._error(number, "a number", text)
        return int(text)

    def _taken(self, left: dict[str, list[str]], section: str, count: int) -> str:
        """Take the next weights of a section."""
        values = left[section]
        if len(values) < count:
            there = len(self._values(section))
            more = there + count - len(values)
            raise FormatError(self.path, f"{more} or more in [{section}]", f"{there}")
        taken, values[:count] = values[:count], []
        return " ".join(taken)
