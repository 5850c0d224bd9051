"""Unknown words, spelt like known ones."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from helpers.files import write_gz

from moses_feature.building.spelling import Spelling, edits


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


def spelling(folder: Path, source: str, target: str) -> Spelling:
    """Return the spelling of two texts."""
    return Spelling(
        *(
            write_gz(folder / side, text.encode())
            for side, text in (("source.gz", source), ("target.gz", target))
        )
    )


SOURCE = """napu ko nagúroma
napu kobégima nagúroma
kobégima ba&apos;ori ŕará- y2k4x
tamo kobégama
"""
TARGET = "usuario vergüenza\r\nnagúrama"


@pytest.fixture(name="spelt", scope="module")
def _spelt(tmp_path_factory):
    return spelling(tmp_path_factory.mktemp("spelling"), SOURCE, TARGET)


@pytest.mark.parametrize(
    ("word", "expected", "why"),
    [
        ("napu", "napu", "it is known"),
        ("kobégame", "kobégama", "its beginning is longer"),
        ("kobégxma", "kobégima", "it is more frequent"),
        ("kobégaxe", "kobégama", "two letters of eight differ"),
        ("kobxgaxe", "kobxgaxe", "three do"),
        ("nagúroxxx", "nagúroma", "three of nine"),
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
def test_the_nearest_known_word(spelt, word, expected, why):
    assert spelt(word) == expected, why
    assert spelt(f"napu {word} .") == f"napu {expected} .", why


@pytest.mark.parametrize(
    ("sentence", "expected", "why"),
    [
        ("kobégxma", "kobégima", "the more frequent one"),
        ("tamo kobégxma", "tamo kobégama", "the text has this one behind its neighbour"),
        ("kobégxma nagúroma", "kobégima nagúroma", "and this one before it"),
        ("tamo kobégxma nagúroma", "tamo kobégima nagúroma", "one neighbour each"),
        ("tamo kobégxma .", "tamo kobégama .", "a neighbour that is unknown"),
        (". kobégxma", ". kobégama", "the end of a sentence is a neighbour"),
        ("tamx kobégxma", "tamo kobégama", "a neighbour that was spelt, too"),
    ],
)
def test_of_words_as_near_the_one_that_fits_its_neighbours(spelt, sentence, expected, why):
    assert spelt(sentence) == expected, why


def test_words_that_were_spelt(tmp_path):
    spelt = spelling(tmp_path, SOURCE, TARGET)
    spelt("napu kobégxma usuarios")
    spelt("tamo kobégxma")
    assert spelt.spelt() == {"kobégxma": "kobégama"}


def test_a_language_without_words(tmp_path):
    assert spelling(tmp_path, "", "")("napu ko") == "napu ko"


def test_words_are_split_at_blanks_alone(tmp_path):
    assert spelling(tmp_path, "a\u00a0cdef\r\n", "")("a\u00a0cdex cdex") == "a\u00a0cdef cdex"
