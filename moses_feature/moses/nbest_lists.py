"""N-best lists in Moses' format (`moses/Manager.cpp`, `OutputNBest`).

A line is `sentence ||| words  ||| Name= value value Name= value ||| total`, two spaces after the
words, optionally with more fields. Sentences are counted from 0, values are natural logs or minus
counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.reader import MOSES, NbestReader
from moses_feature.moses.phrase_table import NUMBER, tokens
from moses_feature.moses.segmentation import PhrasePlace, read_segmentation
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import (
    DataError,
    FormatError,
    MosesFeatureError,
    UsageError,
    shown,
)

if TYPE_CHECKING:
    from moses_feature.moses.features import FeatureSet

NAME = re.compile(r"[A-Za-z][0-9A-Za-z]*")
"""A feature's name that Moses' tools can parse."""
EXPECTED = "sentence ||| words ||| Name= value … ||| total"
"""The form of a line, for error messages."""
SENTENCE, WORDS, VALUES, TOTAL = range(4)
_NUMBER = re.compile(rb"[0-9]{1,18}")
_SEPARATOR = re.compile(rb"(?<= )\|\|\|(?= |$)")


def named(text: str, default: str = "") -> tuple[str, str]:
    """Split `NAME=PATH`; without `NAME=`, the name is `default`.

    Raises:
        UsageError: a name that Moses' tools could not parse.
    """
    name, equals, path = text.partition("=")
    if not equals:
        return default, text
    if not NAME.fullmatch(name) or not path:
        raise UsageError(f"{text}: expected NAME=PATH, the name of letters and digits")
    return name, path


class NbestLine:
    """A line of an n-best list.

    Args:
        line: with its line end or without.
        path: the file, for errors.
        line_number: its line number in the file, 1-based.

    Attributes:
        sentence: the number of the sentence, from 0.
        words: target words.
        total: the log-linear score.
        fields: the text between the separators, with the spaces around.

    Raises:
        FormatError: it is not a line of an n-best list.
    """

    __slots__ = ("_end", "_where", "fields", "sentence", "total", "words")

    def __init__(self, line: bytes, path: str | Path, line_number: int) -> None:
        self._where = path, line_number
        text = line.rstrip(b"\r\n")
        self._end = line[len(text) :]
        fields = text.split(b"|||")
        if len(fields) != TOTAL + 1:  # a word that contains |||, or more fields
            fields = _SEPARATOR.split(text)
        try:
            total, sentence = float(fields[TOTAL]), fields[SENTENCE].strip()
        except (IndexError, ValueError):
            raise self.error(EXPECTED, shown(line)) from None
        if not math.isfinite(total) or b"_" in fields[TOTAL] or not _NUMBER.fullmatch(sentence):
            raise self.error(EXPECTED, shown(line))
        self.sentence = int(sentence)
        self.words = tokens(fields[WORDS])
        self.total = total
        self.fields = fields

    @property
    def links(self) -> bytes | None:
        """The word alignment (`-print-alignment-info-in-n-best`), source and target places.

        It comes behind the total, and behind the segmentation, whose parts contain a `=`; None if
        there is none.
        """
        behind = [field.strip() for field in self.fields[TOTAL + 1 :]]
        return next((field for field in behind if b"=" not in field), None)

    @property
    def segmentation(self) -> bytes | None:
        """The phrases (`-include-segmentation-in-n-best`); see `moses_feature.moses.segmentation`.

        They come behind the total; None if there are none.
        """
        behind = [field.strip() for field in self.fields[TOTAL + 1 :]]
        return next((field for field in behind if b"=" in field or not field), None)

    def phrases(self, source_words: int) -> list[PhrasePlace]:
        """Return the places of the phrases; empty if the list has no segmentation.

        Raises:
            FormatError: the phrases do not cover `source_words` words.
        """
        if self.segmentation is None:
            return []
        try:
            return read_segmentation(self.segmentation, source_words, len(self.words))
        except ValueError as error:
            raise self.error(*error.args) from None

    def labelled(self) -> dict[str, list[float]]:
        """Return the values of features by name.

        Raises:
            FormatError: a value is not a finite number, or has no name.
        """
        try:
            return labelled_values(self.fields[VALUES])
        except ValueError as error:
            raise self._of_bad_value(error) from None

    def values(self, features: FeatureSet) -> Floats:
        """Return the values of tuneable features, in their order.

        Raises:
            MosesFeatureError: values are missing.
        """
        try:
            return np.array(features.values(self.fields[VALUES]))
        except ValueError as error:
            raise self._of_bad_value(error) from None
        except MosesFeatureError as error:
            raise DataError(f"{self.where}: {error}") from None

    def _of_bad_value(self, error: ValueError) -> FormatError:
        """Return an error that shows a value, as `labelled_values` found it."""
        (word,) = error.args
        return self.error("Name= value …: finite numbers, a blank behind each =", shown(word))

    @property
    def where(self) -> str:
        """The file and the line number, for messages."""
        path, line_number = self._where
        return f"{path} at line {line_number}"

    def content(self) -> bytes:
        """Return the line with the current content of its fields."""
        return b"|||".join(self.fields) + self._end

    def error(self, expected: str, found: str) -> FormatError:
        """Return an error that names the line."""
        path, line_number = self._where
        return FormatError(path, expected, found, line_number)


def nbest_lines(reader: NbestReader, sentences: int | None = None) -> Iterator[NbestLine]:
    """Yield the lines of n-best lists.

    Args:
        reader: the reader of the file.
        sentences: the number of sentences of the text, an upper bound; with it the lists must be
            in order.

    Raises:
        FormatError: a line that does not belong to these lists.
    """
    last = 0
    for content in reader:
        line = NbestLine(content, reader.path, reader.line_number)
        if sentences is not None:
            if not last <= line.sentence < sentences:
                raise line.error(f"a sentence from {last} to {sentences - 1}", f"{line.sentence}")
            last = line.sentence
        yield line


def labelled_values(text: bytes) -> dict[str, list[float]]:
    """Return the values of features by name, from `Name= value value Name= value`.

    Raises:
        ValueError: a value is not a finite number, or has no name.
    """
    values: dict[str, list[float]] = {}
    current: list[float] | None = None
    for word in text.split():
        if len(word) > 1 and word.endswith(b"="):
            current = values.setdefault(word[:-1].decode(errors="replace"), [])
        elif current is not None and NUMBER.fullmatch(word) and math.isfinite(float(word)):
            current.append(float(word))
        else:
            raise ValueError(word)
    return values


@dataclass(frozen=True)
class Hypothesis:
    """A translation of a sentence.

    Attributes:
        words: target words.
        features: (tuneable features,) natural logs or minus counts.
        score: the log-linear score, all features weighted.
        segmentation: the phrases, if requested; see `moses_feature.moses.segmentation`.
        links: word alignments, source and target places, if requested.
    """

    words: tuple[bytes, ...]
    features: Floats
    score: float
    segmentation: bytes | None = None
    links: bytes | None = None


def reranked(
    hypotheses: Sequence[Hypothesis], values: Sequence[Floats], weights: Floats
) -> list[Hypothesis]:
    """Return the hypotheses of a sentence with more feature values, best first.

    Args:
        hypotheses: translations.
        values: the new values of each, (new features,).
        weights: (all features,) the weights of the old features and the new ones.
    """
    found = []
    for hypothesis, new in zip(hypotheses, values, strict=True):
        features = np.concatenate([hypothesis.features, new])
        found.append(replace(hypothesis, features=features, score=float(features @ weights)))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


def format_nbest(sentence: int, hypotheses: Sequence[Hypothesis], features: FeatureSet) -> bytes:
    """Return the lines of a sentence's n-best list, six significant digits, like Moses."""
    template = features.template()
    lines = []
    for hypothesis in hypotheses:
        words = b"".join(word + b" " for word in hypothesis.words)
        values = template % tuple((hypothesis.features + 0.0).tolist())  # + 0.0: no minus zero
        line = b"%d ||| %b ||| %b ||| %.6g" % (sentence, words, values, hypothesis.score)
        if hypothesis.segmentation is not None:
            line += b" ||| %b" % hypothesis.segmentation
        if hypothesis.links is not None:
            line += b" ||| %b " % hypothesis.links
        lines.append(line + b"\n")
    return b"".join(lines)


def read_nbest(
    path: str | Path, features: FeatureSet, sentences: int, form: str = MOSES
) -> Iterator[list[Hypothesis]]:
    """Yield the n-best list of each sentence, empty for a sentence without translations.

    Args:
        path: the file, text or compressed.
        features: the features in the file.
        sentences: the number of sentences of the text.
        form: the format of the file; see `moses_feature.moses.nbest_formats.reader`.

    Raises:
        FormatError: a bad line, or sentences that are not in order.
    """
    sentence = 0
    hypotheses: list[Hypothesis] = []
    with NbestReader(path, form) as reader:
        for line in nbest_lines(reader, sentences):
            while sentence < line.sentence:
                yield hypotheses
                sentence, hypotheses = sentence + 1, []
            values, behind = line.values(features), (line.segmentation, line.links)
            hypotheses.append(Hypothesis(tuple(line.words), values, line.total, *behind))
    while sentence < sentences:
        yield hypotheses
        sentence, hypotheses = sentence + 1, []


def first_lines(path: str | Path, sentences: int) -> Iterator[NbestLine]:
    """Yield the line of each sentence's first translation.

    Only the sentence number is read of the other lines.

    Raises:
        FormatError: a line that is not one of an n-best list of so many sentences.
    """
    last = None
    with LineReader(path) as reader:
        for line in reader:
            if (number := line.partition(b"|||")[0]) == last:
                continue
            last = number
            parsed = NbestLine(line, path, reader.line_number)
            if not 0 <= parsed.sentence < sentences:
                expected = f"a sentence from 0 to {sentences - 1}"
                raise parsed.error(expected, f"{parsed.sentence}")
            yield parsed


def first_translations(path: str | Path, sentences: int) -> list[tuple[bytes, ...]]:
    """Return the words of each sentence's first translation, empty without translations.

    See `first_lines`.
    """
    first: list[tuple[bytes, ...]] = [()] * sentences
    for line in first_lines(path, sentences):
        first[line.sentence] = tuple(line.words)
    return first
