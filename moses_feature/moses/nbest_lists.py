"""N-best lists as Moses writes them (`moses/Manager.cpp`, `OutputNBest`).

A line is `sentence ||| words  ||| Name= value value Name= value ||| total`, two spaces after the
words, and may go on after that; sentences are counted from 0, values are natural logs or minus
counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
"""Of a feature, as Moses' tools can carry it."""
EXPECTED = "sentence ||| words ||| Name= value … ||| total"
"""What a line should look like, for error messages."""
SENTENCE, WORDS, VALUES, TOTAL = range(4)
_SEPARATOR = re.compile(rb"(?<= )\|\|\|(?= |$)")


def named(text: str, default: str = "") -> tuple[str, str]:
    """Split `NAME=PATH`; without a name, it is the default one.

    Raises:
        UsageError: a name that Moses' tools could not carry.
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
        path: of the file that it stands in.
        line_number: where it stands there, 1-based.

    Attributes:
        sentence: its number, from 0.
        words: target words.
        total: the log-linear score.
        fields: what stands between the separators, with the spaces around.

    Raises:
        FormatError: it is not a line of an n-best list.
    """

    __slots__ = ("_end", "_where", "fields", "sentence", "total", "words")

    def __init__(self, line: bytes, path: str | Path, line_number: int) -> None:
        self._where = path, line_number
        text = line.rstrip(b"\r\n")
        self._end = line[len(text) :]
        fields = text.split(b"|||")
        if len(fields) != TOTAL + 1:  # a word that has bars in it, or more fields
            fields = _SEPARATOR.split(text)
        try:
            total, sentence = float(fields[TOTAL]), fields[SENTENCE].strip()
        except (IndexError, ValueError):
            raise self.error(EXPECTED, shown(line)) from None
        if not math.isfinite(total) or b"_" in fields[TOTAL] or not sentence.isdigit():
            raise self.error(EXPECTED, shown(line))
        self.sentence = int(sentence)
        self.words = tokens(fields[WORDS])
        self.total = total
        self.fields = fields

    @property
    def links(self) -> bytes | None:
        """The word alignment (`-print-alignment-info-in-n-best`), source and target place.

        It stands behind the total, and behind the segmentation, whose parts have a `=`; None if
        there is none.
        """
        behind = [field.strip() for field in self.fields[TOTAL + 1 :]]
        return next((field for field in behind if b"=" not in field), None)

    @property
    def segmentation(self) -> bytes | None:
        """The phrases (`-include-segmentation-in-n-best`); see `moses_feature.moses.segmentation`.

        They stand behind the total; None if the list has none.
        """
        behind = [field.strip() for field in self.fields[TOTAL + 1 :]]
        return next((field for field in behind if b"=" in field or not field), None)

    def phrases(self, source_words: int) -> list[PhrasePlace]:
        """Return the places of the phrases; none if the list has no segmentation.

        Raises:
            FormatError: they are not those of so many source words.
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
            FormatError: a value that is not a finite number, or one without a name.
        """
        try:
            return labelled_values(self.fields[VALUES])
        except ValueError:
            raise self.error("Name= value …", shown(self.fields[VALUES])) from None

    def values(self, features: FeatureSet) -> Floats:
        """Return the values of tuneable features, in their order.

        Raises:
            MosesFeatureError: they are not there.
        """
        try:
            return np.array(features.values(self.fields[VALUES]))
        except ValueError:
            raise self.error(EXPECTED, shown(self.fields[VALUES])) from None
        except MosesFeatureError as error:
            raise DataError(f"{self.where}: {error}") from None

    @property
    def where(self) -> str:
        """File and line."""
        path, line_number = self._where
        return f"{path} at line {line_number}"

    def content(self) -> bytes:
        """Return the line, with what was changed in its fields."""
        return b"|||".join(self.fields) + self._end

    def error(self, expected: str, found: str) -> FormatError:
        """Return an error that names the line."""
        path, line_number = self._where
        return FormatError(path, expected, found, line_number)


def nbest_lines(reader: NbestReader, sentences: int | None = None) -> Iterator[NbestLine]:
    """Yield the lines of n-best lists.

    Args:
        reader: of the file.
        sentences: how many there must be at most; their lists are then in order.

    Raises:
        FormatError: a line that is not one of these lists.
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
        ValueError: a value that is not a finite number, or one without a name.
    """
    values: dict[str, list[float]] = {}
    current: list[float] | None = None
    for word in text.split():
        if word.endswith(b"="):
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
        segmentation: the phrases, if they were asked for; see `moses_feature.moses.segmentation`.
        links: word alignments, source and target place, if they were asked for.
    """

    words: tuple[bytes, ...]
    features: Floats
    score: float
    segmentation: bytes | None = None
    links: bytes | None = None


def format_nbest(sentence: int, hypotheses: Sequence[Hypothesis], features: FeatureSet) -> bytes:
    """Return the lines of a sentence's n-best list, six significant digits, as Moses has them."""
    template = features.template()
    lines = []
    for hypothesis in hypotheses:
        words = b"".join(word + b" " for word in hypothesis.words)
        values = template % tuple((hypothesis.features + 0.0).tolist())  # no minus zero
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
    """Yield the n-best list of each sentence, an empty list where there is none.

    Args:
        path: the file, text or compressed.
        features: whose values stand there.
        sentences: how many there must be at most.
        form: of the file; see `moses_feature.moses.nbest_formats.reader`.

    Raises:
        FormatError: a line that is not as described above, or sentences that are not in order.
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


def first_translations(path: str | Path, sentences: int) -> list[tuple[bytes, ...]]:
    """Return the words of each sentence's first translation, none where there is no list.

    Of the other lines nothing but the number of the sentence is read.

    Raises:
        FormatError: a line that is not one of an n-best list of so many sentences.
    """
    first: list[tuple[bytes, ...]] = [()] * sentences
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
            first[parsed.sentence] = tuple(parsed.words)
    return first
