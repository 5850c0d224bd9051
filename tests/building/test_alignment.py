"""Links made of both directions, against a plain twin; and the aligner itself."""

from __future__ import annotations

import importlib.util
import random

import numpy as np
import pytest

from moses_feature.building import alignment
from moses_feature.building.alignment import (
    SEVERAL,
    DirectedAligner,
    Way,
    _numbers,
    align,
    symmetrised,
    ways_of,
)
from moses_feature.building.bitext import Bitext, NumberedText, TextPair
from moses_feature.runtime.errors import MosesFeatureError

needs_aligner = pytest.mark.skipif(
    importlib.util.find_spec("thot") is None, reason="needs sil-thot"
)
NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def plain(a: list[int], b: list[int]) -> set[tuple[int, int]]:  # noqa: C901  # three steps in one
    """Return links as (source, target): a has the target of each source word, b the reverse."""
    forward = {(s, t) for s, t in enumerate(a) if t >= 0}
    backward = {(s, t) for t, s in enumerate(b) if s >= 0}
    links = forward & backward

    def open_words(s: int, t: int) -> tuple[bool, bool]:
        return all(s != x for x, _ in links), all(t != y for _, y in links)

    grown = True
    while grown:
        grown = False
        for t in range(len(b)):
            for s in range(len(a)):
                if (s, t) not in links:
                    continue
                for down, right in NEIGHBOURS:
                    new = s + right, t + down
                    if new in forward | backward and any(open_words(*new)):
                        links.add(new)
                        grown = True
    for candidates in (backward - forward, forward - backward):
        for s, t in sorted(candidates, key=lambda link: link[::-1]):
            if all(open_words(s, t)):
                links.add((s, t))
    return links


def links_of(bitext: Bitext, sentence: int) -> list[tuple[int, int]]:
    first, end = bitext.link_offsets[sentence : sentence + 2]
    return [tuple(link) for link in bitext.links[first:end].tolist()]


def test_against_a_plain_twin():
    choose = random.Random(3)
    texts, of_source, of_target, expected = ([], []), [], [], []
    for _ in range(300):
        sizes = choose.randint(1, 7), choose.randint(1, 7)
        for text, size in zip(texts, sizes, strict=True):
            text.append([b"w"] * size)
        a = [choose.randint(-1, sizes[1] - 1) for _ in range(sizes[0])]
        b = [choose.choice([-1, min(t, sizes[0] - 1), 0]) for t in range(sizes[1])]
        of_source += a
        of_target += b
        expected.append(sorted(plain(a, b), key=lambda link: link[::-1]))
    source, target = map(NumberedText.of_sentences, texts)
    pair = TextPair(source, target, np.ones(len(source), dtype=np.bool_), {}, [])
    places = np.array(of_target, dtype=np.int16), np.array(of_source, dtype=np.int16)
    found = symmetrised(pair, *places)
    assert [links_of(found, sentence) for sentence in range(300)] == expected


def dictionary(seed: int, sentences: int = 200) -> TextPair:
    """Return texts of which word n of one side always translates word n of the other."""
    choose = random.Random(seed)
    numbers = [
        [choose.randrange(30) for _ in range(choose.randint(3, 7))] for _ in range(sentences)
    ]
    sides = [
        NumberedText.of_sentences([b"%b%d" % (letter, n) for n in sentence] for sentence in numbers)
        for letter in (b"s", b"t")
    ]
    return TextPair(*sides, np.ones(sentences, dtype=np.bool_), {}, [])


@needs_aligner
@pytest.mark.parametrize("way", [Way("eflomal", 1), Way("fast-align"), Way("eflomal", letters=2)])
def test_words_are_aligned_with_their_translations(way):
    pair = dictionary(1)
    reported = []
    found = align(pair, way, reported.append)
    same = found.links[:, 0] == found.links[:, 1]
    assert same.mean() > 0.95
    assert len(found.links) > 0.95 * len(pair.source.ids)
    assert sum(reported) <= 1
    shares = []
    DirectedAligner(pair.source, pair.target, way).align(shares.append)
    assert sum(shares) == pytest.approx(1)
    again = align(pair, way)
    np.testing.assert_array_equal(again.links, found.links)


def test_ways():
    assert ways_of("eflomal", 7) == [Way("eflomal", 7)]
    assert [way.seed for way in ways_of("several", 7)] == [7 + way.seed for way in SEVERAL]
    text = NumberedText.of_sentences([["día".encode(), "días".encode()], [b"diente"]])
    assert [*_numbers(text, 3)] == [["1", "1"], ["0"]]


def test_without_an_aligner(monkeypatch):
    monkeypatch.setattr(alignment, "find_spec", lambda _: None)
    with pytest.raises(MosesFeatureError, match=r"pip install .*\[build\]"):
        align(dictionary(1, 3), Way("eflomal"))
