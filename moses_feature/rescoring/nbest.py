"""Add features to n-best lists of any decoder; see `moses_feature.moses.nbest_lists`.

A new value is appended to the features; everything else stays the same, to the byte. Only with
weights are the totals computed again and the translations of a sentence sorted by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from moses_feature.cslm.scorer import NeuralLM
from moses_feature.moses.features import FeatureSet, WeightsByName
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import TOTAL, VALUES, NbestLine
from moses_feature.moses.phrase_table import NUMBER, tokens
from moses_feature.networks.known_words import KnownWords
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import FormatError, MosesFeatureError, shown
from moses_feature.sentences.settings import MOST_PIECES

UNTUNEABLE = ("UnknownWordPenalty0",)
"""Features that Moses leaves out of its n-best lists."""

TOGETHER = 8
"""Sentences whose lists are scored together: networks need less time for many translations."""

FEWEST_RESCORED = 100
"""At least this many translations of a sentence are reranked, even if fewer are wanted."""

TRANSLATIONS = "the translations"
"""The content of lists, for error messages."""

T = TypeVar("T")
U = TypeVar("U")


class AnyTranslation(Protocol):
    """A translation of an n-best list."""

    @property
    def words(self) -> Sequence[bytes]:
        """Its words."""

    @property
    def links(self) -> bytes | None:
        """Its word alignment, source and target place; None if the list has none."""


class BadTranslationError(MosesFeatureError):
    """A translation that a feature cannot score.

    Args:
        translation: one of those to score.
        expected: what was expected.
        found: what was found.
    """

    def __init__(self, translation: AnyTranslation, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, found {found}")
        self.translation, self.expected, self.found = translation, expected, found


def refuse_too_long(translation: AnyTranslation, found: int) -> None:
    """Refuse a translation if it, or its sentence, has more than `MOST_PIECES` pieces.

    Raises:
        BadTranslationError: it has.
    """
    if found > MOST_PIECES:
        expected = f"{MOST_PIECES} words or subwords at most"
        raise BadTranslationError(translation, expected, f"{found}")


Lists = Sequence[tuple[int, Sequence[AnyTranslation]]]
"""N-best lists, each with the number (from 0) of its sentence."""


class SentenceScorer(Protocol):
    """A feature of whole translations.

    Attributes:
        name: the name of the feature, such as CSLM0.
    """

    name: str

    def scores(self, lists: Lists) -> list[float]:
        """Return the value, a natural log, of each translation, list after list.

        Raises:
            BadTranslationError: a translation lacks the data that the feature needs.
        """

    def finish(self) -> None:
        """Check, after the last sentence, that lists and model belong together.

        Raises:
            MosesFeatureError: they do not.
        """


def all_of(lists: Lists) -> list[AnyTranslation]:
    """Return the translations of some lists, list after list."""
    return [translation for _, translations in lists for translation in translations]


class CslmScorer:
    """log p of a translation under a neural language model, its end included.

    Args:
        name: the name of the feature.
        model: the language model.
        warns: see `KnownWords`.
    """

    def __init__(self, name: str, model: NeuralLM, warns: bool = False) -> None:
        self.name = name
        self._model = model
        self._known = KnownWords(name, TRANSLATIONS, model.vocabulary, warns=warns)

    def scores(self, lists: Lists) -> list[float]:
        """Return log p of each translation.

        Raises:
            MosesFeatureError: the model knows too few words.
        """
        for _, translations in lists:
            for of in translations[:1]:
                self._known.add(of.words)
        found = self._model.sentence_log_probs([of.words for of in all_of(lists)])
        return [float(log_probs.sum(dtype=np.float64)) for log_probs in found]

    def finish(self) -> None:
        """Check that the model knows most words of the translations."""
        self._known.check()


def read_weights(path: str | Path) -> dict[str, tuple[float, ...]]:
    """Read weights by the names of features: lines such as `LM0= 0.1`, or a whole moses.ini.

    Of an ini these are the weights of the values in its n-best lists, the tuneable ones.

    Raises:
        FormatError: a bad line, or a name that occurs twice.
    """
    weights: dict[str, tuple[float, ...]] = {}
    with LineReader(path) as reader:
        lines = list(reader)
    if _is_ini(lines):
        ini = MosesIni(Path(path), b"".join(lines))
        if not ini.weights:
            raise FormatError(path, "weights, as lines or in a moses.ini", "none")
        return FeatureSet.of_ini(ini).tuneable_by_name()
    for number, line in enumerate(lines, start=1):
        words = tokens(line)
        if not words or words[0].startswith(b"#"):
            continue
        name = words[0][:-1].decode(errors="replace")
        good = (
            name
            and len(words) > 1
            and words[0].endswith(b"=")
            and all(NUMBER.fullmatch(word) and math.isfinite(float(word)) for word in words[1:])
        )
        if not good or name in weights:
            expected = "a line like Name= 0.2 0.2, finite numbers, each name once"
            raise FormatError(path, expected, shown(line.rstrip()), number)
        weights[name] = tuple(map(float, words[1:]))
    return weights


def _is_ini(lines: Iterable[bytes]) -> bool:
    """Return whether the first line with content is the head of a section."""
    said = (line.strip() for line in lines)
    return next((line for line in said if line and line[:1] != b"#"), b"").startswith(b"[")


def in_groups(
    compute: Callable[[list[T]], Iterable[U]], lists: Iterable[T], threads: int
) -> Iterator[U]:
    """Yield what a function makes of lists, `TOGETHER` at a time in each thread, in their order."""
    left = iter(lists)
    groups = iter(lambda: list(islice(left, TOGETHER)), [])
    with ThreadPoolExecutor(threads) as pool:
        run = map if threads == 1 else pool.map
        while some := list(islice(groups, threads)):
            for found in run(compute, some):
                yield from found


def rescore(
    reader: NbestReader,
    scorers: Sequence[SentenceScorer],
    weights: WeightsByName | None = None,
    threads: int = 1,
) -> Iterator[list[RescoredLine]]:
    """Yield n-best lists with more features, a sentence at a time.

    Args:
        reader: the reader of the lists; the lines of a sentence stand together.
        scorers: the scorers of the new features, in order.
        weights: the weights of all features by name, to rerank each list; None keeps the order.
        threads: threads that score, each some sentences at a time.

    Raises:
        FormatError: a line that is not of an n-best list, has bad features, has one of the new ones
            already, or has features without weights.
    """
    is_empty = True
    by_sentence = groupby(_lines(reader), key=lambda line: line.sentence)
    read = ((sentence, list(lines)) for sentence, lines in by_sentence)
    for of_sentence in in_groups(partial(_appended, scorers=scorers), read, threads):
        is_empty = False
        for place, line in enumerate(of_sentence):
            line.place = place
            if weights is not None:
                line.weigh(weights)
        if weights is not None:
            of_sentence.sort(key=lambda line: -line.total)  # stable
        yield of_sentence
    if is_empty:
        raise FormatError(reader.path, "n-best lists", "an empty file")
    for scorer in scorers:
        scorer.finish()


def new_features(scorers: Sequence[SentenceScorer], lists: Lists) -> Floats:
    """Return the values (translations, scorers) of new features, list after list.

    Raises:
        BadTranslationError: a translation cannot be scored, or its score is nan or inf.
    """
    found = np.array([scorer.scores(lists) for scorer in scorers], dtype=np.float64)
    for scorer, values in zip(scorers, found, strict=True):
        for bad in np.flatnonzero(~np.isfinite(values)):
            expected = f"a finite score of {scorer.name}"
            raise BadTranslationError(all_of(lists)[bad], expected, f"{values[bad]:g}")
    return found.T


def _appended(
    lists: Sequence[tuple[int, list[RescoredLine]]], scorers: Sequence[SentenceScorer]
) -> list[list[RescoredLine]]:
    """Append the features of all scorers to the lines of some lists, and return these."""
    lines = [line for _, of_sentence in lists for line in of_sentence]
    try:
        found = new_features(scorers, lists) if scorers else np.zeros((len(lines), 0))
    except BadTranslationError as error:
        [line] = (of for of in lines if of is error.translation)
        raise line.error(error.expected, error.found) from None
    for line, values in zip(lines, found.tolist(), strict=True):
        for scorer, value in zip(scorers, values, strict=True):
            line.append(scorer.name, value)
    return [of_sentence for _, of_sentence in lists]


class RescoredLine(NbestLine):
    """A line of an n-best list whose features and total may change.

    Attributes:
        place: its index in its sentence's list as read, from 0.
    """

    __slots__ = ("place",)
    place: int

    def append(self, name: str, value: float) -> None:
        """Append a feature."""
        label = f"{name}=".encode()
        if label in self.fields[VALUES].split():
            raise self.error(f"no feature {name} yet", shown(self.fields[VALUES]))
        self.fields[VALUES] = b"%b %b %.6g " % (self.fields[VALUES].rstrip(), label, value)

    def weigh(self, weights: WeightsByName) -> None:
        """Compute the total again."""
        values = self.labelled()
        for name in sorted({*values, *weights}):
            here, there = len(values.get(name, ())), len(weights.get(name, ()))
            if here and not there:
                raise self.error(f"a weight of {name}", "none in those of --weights")
            if not here and name not in UNTUNEABLE:
                raise self.error(
                    f"a value of {name}, which has a weight (--model {name}=…?)", "none"
                )
            if here and here != there:
                raise self.error(f"as many values of {name} as it has weights, {there}", f"{here}")
        self.total = sum(
            weight * value
            for name, of_name in values.items()
            for weight, value in zip(weights.get(name, ()), of_name, strict=True)
        )
        if not math.isfinite(self.total):
            raise self.error("a finite total", f"{self.total:g}")
        end = b" " if len(self.fields) > TOTAL + 1 else b""
        self.fields[TOTAL] = b" %.6g%b" % (self.total, end)


def _lines(reader: NbestReader) -> Iterator[RescoredLine]:
    done: set[int] = set()
    last = None
    for content in reader:
        line = RescoredLine(content, reader.path, reader.line_number)
        if line.sentence != last:
            if line.sentence in done:
                raise line.error(f"the lines of sentence {line.sentence} together", "some more")
            done.add(line.sentence)
            last = line.sentence
        line.labelled()  # what cannot be read again is not written
        yield line
