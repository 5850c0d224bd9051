"""N-grams of a text, numbered in parts and on disk: against sorted tuples."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from moses_feature.building.bitext import NumberedText
from moses_feature.building.ngrams import NONE, bounds_of, grams_of

WORDS = [b"a", b"b", b"zz", b"~", b"\xc3\xa9"]


def random_sentences(seed: int) -> list[list[bytes]]:
    choose = random.Random(seed)
    return [choose.choices(WORDS, (9, 4, 2, 1, 1), k=choose.randint(1, 6)) for _ in range(80)]


@pytest.mark.parametrize("part_bits", [0, 3, 21])
@pytest.mark.parametrize("on_disk", [False, True])
def test_against_sorted_tuples(tmp_path, part_bits, on_disk):
    sentences = random_sentences(part_bits)
    text = NumberedText.of_sentences(sentences)
    found = list(grams_of(text, 8, tmp_path if on_disk else None, part_bits))
    assert len(found) == max(map(len, sentences))
    assert not list(tmp_path.iterdir())
    shorter = {(): 0}
    for length, grams in enumerate(found, 1):
        at = [
            tuple(of[n : n + length]) if n + length <= len(of) else None
            for of in sentences
            for n in range(len(of))
        ]
        occurring = [gram for gram in at if gram]
        expected = {gram: number for number, gram in enumerate(sorted({*occurring}))}
        assert grams.at.tolist() == [expected[gram] if gram else NONE for gram in at]
        assert grams.place.tolist() == [at.index(gram) for gram in expected]
        counts = Counter(occurring)
        assert grams.count.tolist() == [counts[gram] for gram in expected]
        assert grams.prefix.tolist() == [shorter[gram[:-1]] for gram in expected]
        assert grams.suffix.tolist() == [shorter[gram[1:]] for gram in expected]
        shorter = expected


@pytest.mark.parametrize(
    ("count", "most", "bounds"),
    [
        ([2, 3, 5, 1], 5, [0, 2, 3, 4]),
        ([2, 3, 5, 1], 6, [0, 2, 4]),
        ([9, 1, 9], 4, [0, 1, 2, 3]),
        ([1, 1, 1], 99, [0, 3]),
        ([], 5, [0, 0]),
    ],
)
def test_parts(count, most, bounds):
    assert bounds_of(np.array(count, np.int32), most) == bounds


def test_only_words_are_in_memory(tmp_path):
    text = NumberedText.of_sentences(random_sentences(1))
    words, *longer = grams_of(text, 3, tmp_path)
    for array in (words.at, *(array for grams in longer for array in vars(grams).values())):
        assert isinstance(array.base, np.memmap)
