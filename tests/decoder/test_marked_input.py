"""Marked input against full enumeration by Moses' rules, written again; tags that are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.moses import GIVEN, WALLS
from helpers.toy import TYPE, Step, all_derivations, features_of, make_toy, options_of

from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.options import WINDOW
from moses_feature.decoder.system import System
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.xml_input import (
    GivenTranslation,
    MarkedSentence,
    Marks,
    parse_marked,
)
from moses_feature.runtime.errors import MosesFeatureError

LINES = [
    # the derivations of the longer ones take a while to write down
    pytest.param(line, marks=pytest.mark.slow if len(parse_marked(line.encode()).words) > 3 else ())
    for line in GIVEN
]


def violates(marked: MarkedSentence, step: Step) -> bool:
    """Return whether a phrase of a table may not be used (`ViolatesXmlOptionsConstraint`)."""
    for of in marked.given:
        start, end = of.start, of.end - 1
        if start > step.end or end < step.start:
            continue
        if start < step.start or end > step.end:
            return True
        return f" {b' '.join(of.words).decode()} " not in f" {step.target} "
    return False


def plain_options(toy, marked: MarkedSentence, policy: str):
    """Return Moses' options of a span, unknown words too (`CreateTranslationOptionsForRange`)."""
    words = [word.decode() for word in marked.words]
    covered = {place for of in marked.given for place in range(of.start, of.end)}

    def options(start: int, end: int) -> list[Step]:
        found = [step for step in options_of(toy, words, start, end) if step.table >= 0]
        if policy == "exclusive" and covered & {*range(start, end + 1)}:
            found = []
        if policy == "constraint":
            found = [step for step in found if not violates(marked, step)]
        found += [
            Step(start, end, b" ".join(of.words).decode(), -2, of.log_prob)
            for of in marked.given
            if policy != "ignore" and (of.start, of.end - 1) == (start, end)
        ]
        return found or ([Step(start, end, words[start], -1)] if start == end else [])

    return options


class PlainConstraint:
    """Moses' `ReorderingConstraint`."""

    def __init__(self, marked: MarkedSentence, limit: int) -> None:
        self.size, self.zones, self.limit = len(marked.words), marked.zones, limit
        self.walls = {wall for wall in marked.walls if wall < self.size}
        self.local: dict[int, int] = {}
        for number, (first, last) in enumerate(marked.zones):
            for place in range(first, last):
                zone = marked.zones[self.local[place]] if place in self.local else (-1, -1)
                if place in self.walls or (
                    zone != (-1, -1) and (zone[0] < first or zone[1] > last)
                ):
                    self.walls.discard(place)
                    self.local[place] = number

    def __call__(self, covered: frozenset[int], start: int, end: int) -> bool:
        gap = min(set(range(self.size)) - covered)
        if gap != start and any(place in self.walls for place in range(gap, end)):
            return False
        if gap > max(covered, default=-1) and gap == start:
            return True
        allowed = (self.zone_allows(n, covered, gap, start, end) for n in range(len(self.zones)))
        return all(allowed)

    def zone_allows(self, number: int, covered: frozenset[int], gap, start, end) -> bool:
        first, last = self.zones[number]
        zone, span = set(range(first, last + 1)), set(range(start, end + 1))
        if zone <= covered or not (zone & span or zone & covered):
            return True
        if not zone & span or (start != gap and last - gap >= self.limit):
            return False
        if start <= first:
            return True
        if end > last:
            return zone - covered <= span
        waiting = [place for place in range(first, start) if place not in covered]
        behind = range(min(waiting, default=last), min(last, end))
        return not any(self.local.get(place) == number for place in behind)


def check(toy, line: str, policy: str) -> None:
    marked = parse_marked(line.encode())
    words = [word.decode() for word in marked.words]
    features = FeatureSet.of_ini(toy.ini)
    options, allowed = plain_options(toy, marked, policy), PlainConstraint(marked, toy.limit)
    best: dict[str, float] = {}
    for steps in all_derivations(toy, words, options, allowed):
        score = float(features_of(toy, words, steps) @ features.weights)
        text = " ".join(step.target for step in steps)
        best[text] = max(score, best.get(text, -math.inf))
    expected = sorted(best.values(), reverse=True)[:100]
    decoder = EmbeddedDecoder(
        System.of_ini(toy.ini),
        [marked.words],
        SearchLimits(pops=20_000, stack=20_000),
        marks=Marks((marked,), policy),
    )
    found = decoder.translate(0, 100)
    np.testing.assert_allclose([of.score for of in found], expected, atol=1e-6)


@pytest.mark.parametrize("policy", ["exclusive", "inclusive", "constraint", "ignore"])
@pytest.mark.parametrize("line", LINES)
def test_given_translations_against_full_enumeration(tmp_path, line, policy):
    check(make_toy(tmp_path / "toy", options=2, tables=2), line, policy)


@pytest.mark.parametrize("limit", [2, 6])
@pytest.mark.parametrize("line", WALLS)
def test_walls_and_zones_against_full_enumeration(tmp_path, line, limit):
    toy = make_toy(tmp_path / "toy", options=2, limit=limit, types=(TYPE,))
    check(toy, line, "inclusive")


def test_a_given_translation_that_is_too_long(tmp_path):
    toy = make_toy(tmp_path / "toy")
    marked = parse_marked(b'<n translation="X">' + b"a " * (WINDOW + 1) + b"</n>")
    with pytest.raises(MosesFeatureError, match="60 words at most, found one of 61"):
        EmbeddedDecoder(System.of_ini(toy.ini), [marked.words], marks=Marks((marked,), "exclusive"))


def test_a_marked_sentence():
    line = (
        b'the <np translation="un  chien||&#124;" prob="0.5||1">black  dog</np> <zone>a b</zone> .'
    )
    assert parse_marked(line) == MarkedSentence(
        (b"the", b"black", b"dog", b"a", b"b", b"."),
        (
            GivenTranslation(1, 3, (b"un", b"chien"), math.log(0.5)),
            GivenTranslation(1, 3, (b"&#124;",), 0.0),
        ),
        (),
        ((3, 4),),
    )
    assert parse_marked(b"a < b <wall/> c").walls == (2,)
    assert parse_marked(b'a <wall span="0-999999"/> b').walls == (0, 1)
    assert parse_marked(b"1 < 2 <3>").words == (b"1", b"<", b"2", b"<3>")
    assert parse_marked(b'<b english="x">y</b><b/>').given[0].words == (b"x",)
    assert parse_marked(b"<wall/> a <wall/>").walls == (0,)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a <b", "expected a tag such as <np>, found '<b'"),
        ("a <b>c", "<b> is never closed"),
        ("a </b>", "'</b>' closes no tag"),
        ("<a>b<c>d</a></c>", "'</a>' closes no tag"),
        (
            '<n translation="x||y" prob="1">a</n>',
            "a probability of each of 2 translations, found 1",
        ),
        ('<n translation="x" prob="-1">a</n>', "expected a probability, found '-1'"),
        ('<n translation="x" prob="nan">a</n>', "expected a probability"),
        ('<n translation="x|y">a</n>', "words of a translation, found 'x|y'"),
        ('<n translation="x" span="3">a</n>', "words of a sentence of 1, found 4"),
        ('<n translation="x" span="b">a</n>', 'expected span="0-1"'),
        ("<zone></zone> a", "expected words in a zone"),
        ("<n translation='x'>a</n>", "expected attributes such as"),
        ('<n translation="x > y">a</n>', "expected attributes such as"),
        ('<n translation="">a</n>', "words of a translation, found ''"),
        ('<n translation="x" span="3-1">a b c d</n>', 'expected span="0-1"'),
        (f"a <n{' ' * 100_000}", "expected a tag such as <np>"),
        ('<ne translation="@num@" entity="1">a</ne>', "tags <ne> are not supported"),
    ],
)
def test_wrong_marks(line, message):
    with pytest.raises(MosesFeatureError, match=message.replace("|", r"\|")):
        parse_marked(line.encode())
