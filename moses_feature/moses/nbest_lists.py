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
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError, shown

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


@dataclass
class NbestLine:
    """A line of an n-best list.

    Attributes:
        sentence: its number, from 0.
        words: target words.
        total: the log-linear score.
        fields: what stands between the separators, with the spaces around.
    """

    sentence: int
    words: list[bytes]
    total: float
    fields: list[bytes]

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
        """The phrases (`-include-segmentation-in-n-best`); see `moses_feature.moses.alignments`.

        They stand behind the total; None if the list has none.
        """
        behind = [field.strip() for field in self.fields[TOTAL + 1 :]]
        return next((field for field in behind if b"=" in field or not field), None)

    @classmethod
    def parse(cls, line: bytes) -> NbestLine:
        """Read a line, its line end left out.

        Raises:
            ValueError: it is not one of an n-best list.
        """
        fields = line.split(b"|||")
        if len(fields) != TOTAL + 1:  # a word that has bars in it, or more fields
            fields = _SEPARATOR.split(line)
        if len(fields) <= TOTAL:
            raise ValueError(line)
        total, sentence = float(fields[TOTAL]), fields[SENTENCE].strip()
        if not math.isfinite(total) or b"_" in fields[TOTAL] or not sentence.isdigit():
            raise ValueError(line)
        return cls(int(sentence), tokens(fields[WORDS]), total, fields)


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
        segmentation: the phrases, if they were asked for; see `moses_feature.moses.alignments`.
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
        for line in reader:
            try:
                number, hypothesis = _parse(line, features)
            except MosesFeatureError as error:
                where = f"{path} at line {reader.line_number}"
                raise MosesFeatureError(f"{where}: {error}") from None
            except ValueError:
                raise FormatError(path, EXPECTED, shown(line), reader.line_number) from None
            if not sentence <= number < sentences:
                expected = f"a sentence from {sentence} to {sentences - 1}"
                raise FormatError(path, expected, f"{number}", reader.line_number)
            while sentence < number:
                yield hypotheses
                sentence, hypotheses = sentence + 1, []
            hypotheses.append(hypothesis)
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
            try:
                parsed = NbestLine.parse(line)
            except ValueError:
                raise FormatError(path, EXPECTED, shown(line), reader.line_number) from None
            if not 0 <= parsed.sentence < sentences:
                expected = f"a sentence from 0 to {sentences - 1}"
                raise FormatError(path, expected, f"{parsed.sentence}", reader.line_number)
            first[parsed.sentence] = tuple(parsed.words)
    return first


def _parse(line: bytes, features: FeatureSet) -> tuple[int, Hypothesis]:
    parsed = NbestLine.parse(line)
    values = np.array(features.values(parsed.fields[VALUES]))
    behind = parsed.segmentation, parsed.links
    return parsed.sentence, Hypothesis(tuple(parsed.words), values, parsed.total, *behind)
