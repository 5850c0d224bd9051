"""Phrase and reordering tables: against a plain twin, and against those of Moses."""

from __future__ import annotations

import gzip
import random
from itertools import islice

import pytest
from helpers.bitexts import bitext_of
from helpers.files import SHARED, needs_shared
from helpers.plain_build import tables as plain_tables

from moses_feature.building import tables as module
from moses_feature.building.bitext import Bitext, NumberedText, read_alignment, read_texts
from moses_feature.building.phrase_numbers import PhraseNumbers
from moses_feature.building.settings import BuildSettings
from moses_feature.building.tables import Tables
from moses_feature.runtime.errors import UsageError

WORDS = [b"a", b"ab", b"}", b"~a", b"z", b"0", b"\xc3\xa9", b"{{"]
"""Some stand behind `|` in the order of bytes, some before it."""


def random_bitext(seed: int, sentences: int = 40, longest: int = 7):
    """Return sentence pairs with links, some words without any."""
    choose = random.Random(seed)
    pairs = []
    for _ in range(sentences):
        source, target = (
            tuple(choose.choice(WORDS) for _ in range(choose.randint(1, longest))) for _ in range(2)
        )
        links = {
            (choose.randrange(len(source)), choose.randrange(len(target)))
            for _ in range(choose.randint(1, 6))
        }
        pairs.append((source, target, frozenset(links)))
    return pairs


def built(bitext: Bitext, settings: BuildSettings, folder=None) -> tuple[bytes, bytes]:
    parts = [*Tables(bitext, settings, folder).parts()]
    return b"".join(p.phrases for p in parts), b"".join(p.reordering for p in parts)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("longest", [2, 3, 7])
@pytest.mark.parametrize("together", [50, 10**6])
def test_tables_against_a_plain_twin(seed, longest, together, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PAIRS_TOGETHER", together)
    pairs = random_bitext(seed)
    folder = tmp_path if seed % 2 else None
    phrases, reordering = built(
        bitext_of(pairs), BuildSettings(phrase_length=longest), folder=folder
    )
    expected = plain_tables(pairs, longest)
    assert phrases.splitlines(keepends=True) == expected[0]
    assert reordering.splitlines(keepends=True) == expected[1]


def test_places_of_two_digits():
    pairs = random_bitext(1, 20, longest=14)
    phrases, _ = built(bitext_of(pairs), BuildSettings(phrase_length=13))
    assert phrases.splitlines(keepends=True) == plain_tables(pairs, 13)[0]
    assert b"10-" in phrases


def test_phrases_are_numbered_in_the_order_of_lines():
    sentences = [source for source, _, _ in random_bitext(9, 60)]
    text = NumberedText.of_sentences(sentences)
    numbers = PhraseNumbers.of_text(text, 4)
    found = {}
    for first, sentence in zip(text.offsets.tolist(), sentences, strict=False):
        for a in range(len(sentence)):
            for b in range(a + 1, min(len(sentence), a + 4) + 1):
                line = b" ".join(sentence[a:b]) + b" ||| "
                found.setdefault(line, set()).add(int(numbers.at[b - a - 1, first + a]))
    assert [found[line] for line in sorted(found)] == [{n} for n in range(len(numbers))]


@pytest.mark.parametrize(
    "kind",
    [
        "wbe-mslr-bidirectional-fe",
        "wbe-monotonicity-backward-fe",
        "wbe-leftright-forward-f",
        "phrase-mslr-bidirectional-fe",
        "phrase-msd-bidirectional-f",
        "phrase-leftright-forward-fe",
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_types_of_reordering_models_against_a_plain_twin(kind, seed):
    pairs = random_bitext(seed)
    settings = BuildSettings(phrase_length=3, reordering=kind)
    _, reordering = built(bitext_of(pairs), settings)
    assert reordering.splitlines(keepends=True) == plain_tables(pairs, 3, kind)[1]


def test_no_reordering_model_and_those_that_cannot_be_decoded():
    _, none = built(bitext_of(random_bitext(3)), BuildSettings(phrase_length=3, reordering="none"))
    assert none == b""
    with pytest.raises(UsageError, match="hier-msd-backward-fe: cannot decode 'hier', only wbe, "):
        BuildSettings(reordering="hier-msd-backward-fe")
    with pytest.raises(UsageError, match="expected one of msd, mslr, monotonicity, leftright"):
        BuildSettings(reordering="wbe-backward-fe")


@needs_shared
@pytest.mark.slow
def test_the_tables_are_those_of_moses():
    """1,796,565 lines of laws, to the byte."""
    folder = SHARED / "laws-en-fr"
    pair = read_texts(str(folder / "train.en.gz"), str(folder / "train.fr.gz"), 1000)
    bitext, _ = read_alignment(str(folder / "model/aligned.grow-diag-final-and.gz"), pair)
    tables = Tables(bitext, BuildSettings(phrase_length=5))
    lines = 0
    with (
        gzip.open(folder / "model/phrase-table.gz") as phrases,
        gzip.open(folder / "model/reordering-table.wbe-msd-bidirectional-fe.gz") as reordering,
    ):
        for part in tables.parts():
            assert part.phrases == b"".join(islice(phrases, part.lines))
            assert part.reordering == b"".join(islice(reordering, part.lines))
            lines += part.lines
        assert not phrases.read(1)
    assert lines == 1_796_565
