"""Phrase and reordering tables: against a plain twin, and against those of Moses."""

from __future__ import annotations

import gzip
import random
from itertools import islice

import numpy as np
import pytest
from helpers.bitexts import bitext_of
from helpers.files import SHARED, needs_shared
from helpers.plain_build import tables as plain_tables

from moses_feature.building import tables as module
from moses_feature.building.bitext import Bitext, Text, read_alignment, read_texts
from moses_feature.building.extraction import Extraction
from moses_feature.building.folds import folds_of, phrases_in
from moses_feature.building.phrase_numbers import PhraseNumbers
from moses_feature.building.settings import BuildSettings
from moses_feature.building.table_parts import FoldTables, parts_of
from moses_feature.building.tables import Tables
from moses_feature.runtime.errors import UsageError

WORDS = [b"a", b"ab", b"}", b"~a", b"z", b"0", b"\xc3\xa9", b"{{"]
"""Some stand behind `|` in the order of bytes, some before it."""


def random_bitext(seed: int, sentences: int = 40):
    """Return sentence pairs with links, some words without any."""
    choose = random.Random(seed)
    pairs = []
    for _ in range(sentences):
        source, target = (
            tuple(choose.choice(WORDS) for _ in range(choose.randint(1, 7))) for _ in range(2)
        )
        links = {
            (choose.randrange(len(source)), choose.randrange(len(target)))
            for _ in range(choose.randint(1, 6))
        }
        pairs.append((source, target, frozenset(links)))
    return pairs


def built(
    bitext: Bitext, settings: BuildSettings, used=None, wanted=None, folder=None
) -> tuple[bytes, bytes]:
    kind = settings.reordering_type
    by_phrases = kind is not None and kind.kind == "phrase"
    extraction = Extraction(bitext, settings.phrase_length, by_phrases, folder)
    tables = Tables(extraction, settings, used, wanted)
    parts = [tables.part(number) for number in range(len(tables.parts))]
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


@pytest.mark.parametrize("seed", range(3))
def test_a_part_of_the_text_is_as_if_it_were_all(seed):
    """Without the sentences of a fold; and then only with the phrases that the fold has."""
    pairs = random_bitext(seed)
    bitext = bitext_of(pairs)
    folds = folds_of(range(len(pairs)), 3, seed)
    settings = BuildSettings(phrase_length=3)
    for fold in range(3):
        used = folds != fold
        rest = [pair for pair, keep in zip(pairs, used.tolist(), strict=True) if keep]
        expected = plain_tables(rest, 3)
        assert [of.splitlines(keepends=True) for of in built(bitext, settings, used)] == [*expected]
        wanted = phrases_in(Extraction(bitext, 3), ~used)
        phrases, _ = built(bitext, settings, used, wanted)
        mine = {
            b" ".join(source[a:b])
            for (source, _, _), keep in zip(pairs, used.tolist(), strict=True)
            if not keep
            for a in range(len(source))
            for b in range(a + 1, len(source) + 1)
        }
        lines = [line for line in expected[0] if line.partition(b" ||| ")[0] in mine]
        assert phrases.splitlines(keepends=True) == lines


def test_phrases_are_numbered_in_the_order_of_lines():
    sentences = [source for source, _, _ in random_bitext(9, 60)]
    text = Text.of_sentences(sentences)
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


@pytest.mark.parametrize("smoothing", ["good-turing", "kneser-ney"])
def test_smoothing_against_the_formulas(smoothing):
    bitext = bitext_of(random_bitext(4, 120))
    plain, _ = built(bitext, BuildSettings(phrase_length=4))
    found, _ = built(bitext, BuildSettings(phrase_length=4, smoothing=smoothing))
    rows = [line.split(b" ||| ") for line in plain.splitlines()]
    counts = [[int(count) for count in row[4].split()] for row in rows]
    of_counts = np.bincount([count for _, _, count in counts], minlength=12)[:11]
    distinct = [{}, {}]
    for row in rows:
        for side in (0, 1):
            distinct[side][row[side]] = distinct[side].get(row[side], 0) + 1
    for line, row, (of_target, of_source, count) in zip(
        found.splitlines(), rows, counts, strict=True
    ):
        n1_source, n1_target = distinct[0][row[0]], distinct[1][row[1]]
        if smoothing == "good-turing":
            discounts = [0.01]
            for n in range(1, 10):
                d = (n + 1) / n * (of_counts[n + 1] + 0.1) / (of_counts[n] + 0.1)
                discounts.append(max(min(d, 1), discounts[-1]))
            direct = inverse = count * (discounts[count] if count < 9 else 1)
        else:
            one, two, three, four = of_counts[1:5].tolist()
            y = one / (one + 2 * two)
            d = (
                min(1 - 2 * y * two / one, 0.9),
                min(2 - 3 * y * three / two, 1.9),
                min(3 - 4 * y * four / three, 2.9),
            )[min(count, 3) - 1]
            direct = count - d + d * n1_source * n1_target / len(rows)
            inverse = count - d + d * n1_target * n1_source / len(rows)
        scores = [float(score) for score in line.split(b" ||| ")[2].split()]
        assert scores[0] == pytest.approx(inverse / of_target, rel=2e-5)
        assert scores[2] == pytest.approx(direct / of_source, rel=2e-5)


def test_folds_have_whole_documents():
    documents = list("aaaaaaaaabccccddddeeffffffggghhh")
    folds = folds_of(documents, 4, 1)
    assert all(len(set(folds[[d == name for d in documents]])) == 1 for name in "abcdefgh")
    assert sorted(np.bincount(folds).tolist()) == [7, 8, 8, 9]
    assert folds.tolist() == folds_of(documents, 4, 1).tolist()
    with pytest.raises(UsageError, match="9 folds: expected as many documents, found 8"):
        folds_of(documents, 9, 1)


@needs_shared
@pytest.mark.slow
def test_the_tables_are_those_of_moses():
    """1,796,565 lines of laws, to the byte."""
    folder = SHARED / "laws-en-fr"
    pair = read_texts(str(folder / "train.en.gz"), str(folder / "train.fr.gz"), 1000)
    bitext, _ = read_alignment(str(folder / "model/aligned.grow-diag-final-and.gz"), pair)
    tables = FoldTables(bitext, BuildSettings(phrase_length=5), None)
    lines = 0
    with (
        gzip.open(folder / "model/phrase-table.gz") as phrases,
        gzip.open(folder / "model/reordering-table.wbe-msd-bidirectional-fe.gz") as reordering,
    ):
        for part in parts_of(tables, None):
            assert part.phrases == b"".join(islice(phrases, part.lines))
            assert part.reordering == b"".join(islice(reordering, part.lines))
            lines += part.lines
        assert not phrases.read(1)
    assert lines == 1_796_565
