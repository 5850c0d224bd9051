"""Operations of aligned sentences: against those of Moses' training, and against a plain twin."""

from __future__ import annotations

import json
import random

import pytest
from helpers.bitexts import bitext_of
from helpers.plain_operations import Derivation, Phrase
from helpers.toy import OPERATIONS

from moses_feature.building.operations import operation_sentences, operations_of

ALIGNED = json.loads(OPERATIONS.read_text())["aligned"]
"""50 random sentence pairs, and their operations by `GenerateSequences.cpp`."""


def test_they_are_those_of_moses():
    pairs = [
        (
            source.encode().split(),
            target.encode().split(),
            [tuple(map(int, link.split("-"))) for link in links.split()],
        )
        for source, target, links, _ in ALIGNED
    ]
    found = [b" ".join(of).decode() for of in operation_sentences(bitext_of(pairs))]
    assert found == [operations for *_, operations in ALIGNED]
    assert sum("_TRANS_SLF_" in operations for operations in found) == 4


def test_a_word_that_is_copied_twice_is_known():
    pairs = [([b"x", b"y"], [b"x", b"y"], [(0, 0), (1, 1)]), ([b"x"], [b"x"], [(0, 0)])]
    both, one = ([*operation_sentences(bitext_of(of))] for of in (pairs, pairs[:1]))
    assert both == [[b"_TRANS_x_TO_x", b"_TRANS_SLF_"], [b"_TRANS_x_TO_x"]]
    assert one == [[b"_TRANS_SLF_", b"_TRANS_SLF_"]]


@pytest.mark.parametrize("seed", range(20))
def test_against_a_plain_twin(seed):
    choose = random.Random(seed)
    source = [choose.choice("abc") for _ in range(choose.randint(1, 30))]
    target = [choose.choice("ABC") for _ in range(choose.randint(1, 30))]
    places = range(len(source)), range(len(target))
    links = [tuple(map(choose.choice, places)) for _ in range(choose.randint(0, 30))]
    expected, _ = Derivation(len(source)).add(Phrase(0, source, target, links))
    sides = ([word.encode() for word in of] for of in (source, target))
    assert operations_of(*sides, links) == [name.encode() for name in expected]


def test_a_long_sentence_with_one_link():
    words = [b"w"] * 1000
    assert len(operations_of(words, words, [(500, 500)])) == 1999
