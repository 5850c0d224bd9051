"""Unknown words, spelt like known ones."""

from __future__ import annotations

import random

import numpy as np
import pytest
from helpers.files import write_gz

from moses_feature.building.spelling import Spelling, edits, words_of
from moses_feature.networks.vocabulary import Vocabulary


def plain_edits(one: str, other: str) -> int:
    """Return the Levenshtein distance by the recursion that defines it."""
    row = list(range(len(other) + 1))
    for deletions, letter in enumerate(one, 1):
        before, row = row, [deletions]
        for column, of_other in enumerate(other, 1):
            replaced = before[column - 1] + (letter != of_other)
            row.append(min(replaced, before[column] + 1, row[-1] + 1))
    return row[-1]


def test_edits_are_those_of_the_plain_recursion():
    draw = random.Random(1)
    words = ["".join(draw.choices("aá'x", k=draw.randint(1, 9))) for _ in range(300)]
    letters = np.zeros((9, len(words)), np.int32)
    for column, word in enumerate(words):
        letters[: len(word), column] = [*map(ord, word)]
    lengths = np.array([*map(len, words)])
    for word in words[:40]:
        assert edits(word, letters, lengths).tolist() == [plain_edits(word, of) for of in words]
    longest = np.full((40, 1), ord("x"), np.int32)
    assert edits("a" * 40, longest, np.array([40])).tolist() == [40]


def known(*words: str) -> Vocabulary:
    return Vocabulary(tuple(map(str.encode, words)))


SPELLING = Spelling(
    known("napu", "kobégima", "kobégama", "nagúroma", "ba&apos;ori", "ŕará-", "y2k4x"),
    known("usuario", "vergüenza", "nagúrama"),
)


@pytest.mark.parametrize(
    ("word", "expected", "why"),
    [
        ("napu", "napu", "it is known"),
        ("kobégame", "kobégama", "its beginning is longer"),
        ("kobégxma", "kobégima", "it is more frequent"),
        ("kobégaxe", "kobégama", "two letters of eight differ"),
        ("kobxgaxe", "kobxgaxe", "three do"),
        ("usuario", "usuario", "the target language knows it"),
        ("usuarios", "usuarios", "no source word is near"),
        ("nagúroma-", "nagúroma", "a hyphen more"),
        ("nagúrema", "nagúrema", "a target word is as near"),
        ("nap", "nap", "three letters are too few"),
        ("napo", "napu", "four are enough"),
        ("ba&apos;oro", "ba&apos;ori", "an apostrophe is one letter"),
        ("y2k4z", "y2k4z", "digits"),
        ("&#124;", "&#124;", "an escaped character"),
        ("napu.com", "napu.com", "an address"),
        ("x" * 41, "x" * 41, "too long"),
        ("", "", "an empty line"),
    ],
)
def test_the_nearest_known_word(word, expected, why):
    assert SPELLING(word) == expected, why
    assert SPELLING(f"napu {word} .") == f"napu {expected} .", why


def test_a_language_without_words():
    assert Spelling(known(), known())("napu ko") == "napu ko"


def test_words_by_frequency(tmp_path):
    text = write_gz(tmp_path / "text.gz", "b a\u00a0c a\u00a0c\ta\u00a0c\r\né b\n".encode())
    assert words_of(text) == known("a\u00a0c", "b", "é")
