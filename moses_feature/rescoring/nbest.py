"""New features for n-best lists, whoever made them (`moses/Manager.cpp`, `OutputNBest`).

A line is `sentence ||| words  ||| Name= value … ||| total`, and may go on after that. A new value
is appended to the features; all else stays as it is, to the byte, unless weights are given: then
the total is computed anew and the translations of a sentence are put in its order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Protocol

import numpy as np

from moses_feature.errors import FormatError, UsageError, shown
from moses_feature.lm.scorer import NeuralLM
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import NUMBER, tokens

UNTUNEABLE = ("UnknownWordPenalty0",)
"""Features that Moses leaves out of its n-best lists."""
NAME = re.compile(r"[A-Za-z][0-9A-Za-z]*")
SEPARATOR = re.compile(rb"(?<= )\|\|\|(?= |$)")

Weights = Mapping[str, Sequence[float]]


class SentenceScorer(Protocol):
    """A feature of whole translations.

    Attributes:
        name: of the feature, such as CSLM0.
    """

    name: str

    def scores(self, sentence: int, translations: Sequence[Sequence[bytes]]) -> list[float]:
        """Return the value, a natural log, of each translation of a sentence (from 0)."""

    def finish(self) -> None:
        """See, after the last sentence, that lists and model belong together."""


class CslmScorer:
    """log p of a translation under a neural language model, its end included."""

    def __init__(self, name: str, model: NeuralLM) -> None:
        self.name = name
        self._model = model

    def scores(self, sentence: int, translations: Sequence[Sequence[bytes]]) -> list[float]:  # noqa: ARG002
        """Return log p of each translation."""
        found = self._model.sentence_log_probs(translations)
        return [float(log_probs.sum(dtype=np.float64)) for log_probs in found]

    def finish(self) -> None:
        """See nothing: any lists will do."""


def named(text: str, default: str) -> tuple[str, str]:
    """Split `NAME=PATH`; without a name, it is the default one.

    Raises:
        UsageError: a name that Moses' tools could not carry.
    """
    name, equals, path = text.partition("=")
    if not equals:
        name, path = default, text
    if not NAME.fullmatch(name) or not path:
        raise UsageError(f"{text}: expected NAME=PATH, the name of letters and digits")
    return name, path


def read_weights(path: str | Path) -> dict[str, tuple[float, ...]]:
    """Read lines such as `LM0= 0.1`, as in the [weight] section of a moses.ini.

    Raises:
        FormatError: another line, or a name that comes twice.
    """
    weights: dict[str, tuple[float, ...]] = {}
    with LineReader(path) as reader:
        for line in reader:
            words = tokens(line)
            if not words or words[0].startswith(b"#"):
                continue
            name = words[0][:-1].decode(errors="replace")
            good = words[0].endswith(b"=") and all(
                NUMBER.fullmatch(word) and math.isfinite(float(word)) for word in words[1:]
            )
            if not good or name in weights:
                expected = "a line like Name= 0.2 0.2, each name once"
                raise FormatError(path, expected, shown(line), reader.line_number)
            weights[name] = tuple(map(float, words[1:]))
    return weights


def rescore(
    reader: LineReader, scorers: Sequence[SentenceScorer], weights: Weights | None = None
) -> Iterator[bytes]:
    """Yield the lines of n-best lists with more features.

    Args:
        reader: of the lists; the lines of a sentence stand together.
        scorers: of the new features, in order.
        weights: of all features by name, to order each list anew; None to leave the order.

    Raises:
        FormatError: a line that is not of an n-best list, has one of the features already, or
            has features without weights.
    """
    for sentence, lines in groupby(_lines(reader), key=lambda line: line.sentence):
        group = list(lines)
        translations = [line.words for line in group]
        for scorer in scorers:
            for line, value in zip(group, scorer.scores(sentence, translations), strict=True):
                line.append(scorer.name, value)
        if weights is not None:
            for line in group:
                line.weigh(weights)
            group.sort(key=lambda line: -line.total)  # stable
        yield from (line.content() for line in group)
    for scorer in scorers:
        scorer.finish()


class _Line:
    """A line of an n-best list."""

    def __init__(self, line: bytes, path: str, line_number: int) -> None:
        self._place = path, line_number
        text = line.rstrip(b"\r\n")
        self._end = line[len(text) :]
        self._fields = SEPARATOR.split(text)  # with the spaces around them
        try:
            self.sentence = int(self._fields[0])
            self.total = _finite(self._fields[3])
        except (ValueError, IndexError):
            expected = "sentence ||| words ||| Name= value … ||| total"
            raise FormatError(path, expected, shown(line), line_number) from None
        self.words = tokens(self._fields[1])

    def append(self, name: str, value: float) -> None:
        """Append a feature."""
        label = f"{name}=".encode()
        if label in self._fields[2].split():
            expected = f"no feature {name} yet"
            raise FormatError(self._place[0], expected, shown(self._fields[2]), self._place[1])
        self._fields[2] = b"%b %b %.6g " % (self._fields[2].rstrip(), label, value)

    def weigh(self, weights: Weights) -> None:
        """Compute the total anew."""
        values: dict[str, list[float]] = {}
        name = ""
        for word in self._fields[2].split():
            if word.endswith(b"="):
                name = word[:-1].decode(errors="replace")
                values[name] = []
            elif NUMBER.fullmatch(word) and name and math.isfinite(float(word)):
                values[name].append(float(word))
            else:
                raise FormatError(self._place[0], "Name= value …", shown(word), self._place[1])
        for name in sorted({*values, *weights}):
            here, there = len(values.get(name, ())), len(weights.get(name, ()))
            if here != there and not (here == 0 and name in UNTUNEABLE):
                raise FormatError(
                    self._place[0],
                    f"as many values of {name} as it has weights, {there}",
                    f"{here}",
                    self._place[1],
                )
        self.total = sum(
            weight * value
            for name, of_name in values.items()
            for weight, value in zip(weights[name], of_name, strict=True)
        )
        end = b" " if len(self._fields) > 4 else b""
        self._fields[3] = b" %.6g%b" % (self.total, end)

    def content(self) -> bytes:
        """Return the line."""
        return b"|||".join(self._fields) + self._end


def _finite(text: bytes) -> float:
    """Return a finite number, or raise ValueError."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _lines(reader: LineReader) -> Iterator[_Line]:
    done: set[int] = set()
    last = None
    for content in reader:
        line = _Line(content, reader.path, reader.line_number)
        if line.sentence != last:
            if line.sentence in done:
                expected = f"the lines of sentence {line.sentence} together"
                raise FormatError(reader.path, expected, "some more", reader.line_number)
            done.add(line.sentence)
            last = line.sentence
        yield line


def check_names(scorers: Iterable[SentenceScorer]) -> None:
    """See that names are not given twice.

    Raises:
        UsageError: one is.
    """
    names = [scorer.name for scorer in scorers]
    if len(set(names)) != len(names):
        raise UsageError(f"features: expected different names, found {', '.join(names)}")
