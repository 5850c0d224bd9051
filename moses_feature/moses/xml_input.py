"""Marked input: words whose translation is given, walls and zones of reordering.

`a <np translation="un chien||le chien" prob="0.8||0.2">dog</np> <wall/> <zone>and so on</zone>`;
follows `moses/XmlOption.cpp`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moses_feature.moses.phrase_table import LOWEST_LOG_SCORE, NUMBER, tokens
from moses_feature.runtime.errors import MosesFeatureError, shown

POLICIES = ("exclusive", "inclusive", "constraint", "ignore")
"""Given translations alone; beside those of the tables; those of the tables that have the given
words, too; none."""

_PART = re.compile(rb"</?[A-Za-z][^>]*>?|(?:[^<]|<(?!/?[A-Za-z]))+")
_TAG = re.compile(rb"<(/?)([A-Za-z][^\s/>]*)((?:\s[^>]*?)?)(/?)>")
_ATTRIBUTE = re.compile(rb'\s([\w-]+)="((?:[^"\\]|\\.)*)"')
_REFUSED = (b"ne", b"update", b"weight-overwrite", b"coord", b"dlt")
"""Tags with a meaning of their own in Moses that nothing here has."""


@dataclass(frozen=True)
class GivenTranslation:
    """A translation of some words that the input gives.

    Attributes:
        start, end: the words, the end excluded.
        words: their translation.
        log_prob: the natural log of its probability.
    """

    start: int
    end: int
    words: tuple[bytes, ...]
    log_prob: float


@dataclass(frozen=True)
class MarkedSentence:
    """A sentence and its marks.

    Attributes:
        words: its words, without the tags.
        given: translations of some of them.
        walls: words behind which there is a wall: what is before it is translated first.
        zones: first and last words of zones: once begun, they are translated as a whole.
    """

    words: tuple[bytes, ...]
    given: tuple[GivenTranslation, ...] = ()
    walls: tuple[int, ...] = ()
    zones: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Marks:
    """The sentences of a text with their marks, and what given translations are for."""

    sentences: Sequence[MarkedSentence]
    policy: str


def parse_marked(line: bytes, words_of: Callable[[bytes], list[bytes]] = tokens) -> MarkedSentence:
    """Read a line of marked input.

    Args:
        line: the line.
        words_of: returns the words of what is between the tags.

    Raises:
        MosesFeatureError: its tags are not those of Moses, or not closed.
    """
    marks = _LineMarks()
    for text in _PART.findall(line):
        if not re.match(rb"</?[A-Za-z]", text):
            marks.words += words_of(text)
            continue
        tag = _TAG.fullmatch(text) if text.endswith(b">") else None
        if tag is None:
            raise MosesFeatureError(f"expected a tag such as <np>, found {shown(text)}")
        marks.add_tag(text, *tag.groups())
    return marks.sentence()


class _LineMarks:
    """What a line has told so far."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self._given: list[GivenTranslation] = []
        self._walls: list[tuple[int, int]] = []
        self._zones: list[tuple[int, int]] = []
        self._opened: list[tuple[bytes, int, bytes]] = []

    def add_tag(
        self, text: bytes, closes: bytes, name: bytes, attributes: bytes, is_empty: bytes
    ) -> None:
        """Add a tag: `text`, and its parts."""
        if closes:
            if not self._opened or self._opened[-1][0] != name:
                raise MosesFeatureError(f"{shown(text)} closes no tag that is open")
            self._add(*self._opened.pop())
        elif is_empty:
            self._add(name, len(self.words), attributes)
        else:
            self._opened.append((name, len(self.words), attributes))

    def _add(self, name: bytes, start: int, text: bytes) -> None:
        """Add what a tag says that is complete."""
        attributes = _attributes(name, text)
        start, end = _span(attributes, start, len(self.words))
        if name in _REFUSED:
            raise MosesFeatureError(f"tags <{name.decode()}> are not supported")
        if name == b"wall":
            self._walls.append((max(start - 1, 0), end))
        elif name == b"zone":
            if start >= end:
                raise MosesFeatureError("expected words in a zone, found none")
            self._zones.append((start, end - 1))
        elif start < end:
            self._given += _translations(name, attributes, start, end)

    def sentence(self) -> MarkedSentence:
        """Return the sentence of the whole line."""
        if self._opened:
            name = self._opened[-1][0].decode(errors="replace")
            raise MosesFeatureError(f"<{name}> is never closed")
        size = len(self.words)
        ends = [of.end for of in self._given] + [last + 1 for _, last in self._zones]
        if (last := max(ends, default=0)) > size:
            raise MosesFeatureError(f"span: expected words of a sentence of {size}, found {last}")
        places = {place for first, end in self._walls for place in range(first, min(end, size))}
        walls, zones = tuple(sorted(places)), tuple(self._zones)
        return MarkedSentence(tuple(self.words), tuple(self._given), walls, zones)


def _attributes(name: bytes, text: bytes) -> dict[bytes, bytes]:
    if _ATTRIBUTE.sub(b"", text).strip():
        raise MosesFeatureError(
            f'<{name.decode(errors="replace")}>: expected attributes such as prob="1", found '
            f"{shown(text.strip())}"
        )
    return dict(_ATTRIBUTE.findall(text))


def _span(attributes: dict[bytes, bytes], start: int, end: int) -> tuple[int, int]:
    """Return the words of a tag, which it may say itself."""
    text = attributes.get(b"span")
    if text is None:
        return start, end
    match = re.fullmatch(rb"(\d{1,6})(?:-(\d{1,6}))?", text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise MosesFeatureError(f'expected span="0-1", found {shown(text)}')
    return int(match[1]), int(match[2] or match[1]) + 1


def _translations(
    name: bytes, attributes: dict[bytes, bytes], start: int, end: int
) -> list[GivenTranslation]:
    texts = [
        text
        for of in (b"translation", b"english")
        if of in attributes
        for text in attributes[of].split(b"||")
    ]
    probs = attributes[b"prob"].split(b"||") if b"prob" in attributes else []
    if probs and len(probs) != len(texts):
        raise MosesFeatureError(
            f"<{name.decode(errors='replace')}>: expected a probability of each of {len(texts)} "
            f"translations, found {len(probs)}"
        )
    found: list[GivenTranslation] = []
    for text, prob in zip(texts, probs or [b"1"] * len(texts), strict=True):
        if not NUMBER.fullmatch(prob) or not math.isfinite(p := float(prob)) or p < 0:
            raise MosesFeatureError(f"expected a probability, found {shown(prob)}")
        log_prob = max(math.log(p), LOWEST_LOG_SCORE) if p > 0 else LOWEST_LOG_SCORE
        words = tuple(tokens(text))
        if not words or any(b"|" in word for word in words):
            raise MosesFeatureError(f"expected words of a translation, found {shown(text)}")
        found.append(GivenTranslation(start, end, words, log_prob))
    return found
