"""Target words of several factors: surface words are translated, models read any factor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.factors import TABLE, TEXT, system, write_model

from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.system import System
from moses_feature.moses.ini import MosesIni
from moses_feature.runtime.errors import FormatError, MosesFeatureError


def lists(of: System, sentences: list[bytes]) -> list[list[tuple]]:
    """Return words, score and values by feature of the translations of each sentence."""
    decoder = EmbeddedDecoder(of, [line.split() for line in sentences])
    names = [f.name for f in of.features.functions if any(f.tuneable)]
    return [
        [
            (h.words, h.score, dict(zip(names, h.features.tolist(), strict=True)))
            for h in decoder.translate(number, 20)
        ]
        for number in range(len(sentences))
    ]


SENTENCES = [b"a b c", b"c b a", b"a a unknown b", b"c"]


def test_a_factor_that_is_the_word_again(tmp_path):
    """The second model says what the first one says: two weights are as good as their sum."""
    plain = TABLE.replace("A|y", "E|y").replace("|x", "").replace("|y", "")
    rows = [line.split(" ||| ") for line in plain.splitlines()]
    double = [" ".join(f"{w}|{w.lower()}" for w in target.split()) for _, target, _ in rows]
    twice = "".join(
        f"{source} ||| {target} ||| {score}\n"
        for (source, _, score), target in zip(rows, double, strict=True)
    )
    write_model(tmp_path / "lm1", [line.lower() for line in TEXT])
    one = lists(system(tmp_path, plain, 0.5, None), SENTENCES)
    two = lists(system(tmp_path, twice, 0.2, 0.3), SENTENCES)
    for of_one, of_two in zip(one, two, strict=True):
        assert [words for words, *_ in of_two] == [words for words, *_ in of_one]
        for (_, score, _), (_, other, features) in zip(of_one, of_two, strict=True):
            assert other == pytest.approx(score)
            assert features["LM1"] == pytest.approx(features["LM0"])


def test_the_other_factor_decides_and_is_not_shown(tmp_path):
    """Derivations with the same words and other tags are one translation; the better one counts."""
    write_model(tmp_path / "lm1", [b"x x y", b"x y", b"x x", b"y x x"])
    found = lists(system(tmp_path, TABLE, 0.1, 2.0), [b"a c", b"c a"])
    for of_sentence in found:
        words = [words for words, *_ in of_sentence]
        assert len(set(words)) == len(words)
        assert not any(b"|" in word for translation in words for word in translation)
    with_y = TABLE.replace("a ||| A|x ||| 0.5\n", "")
    without = lists(system(tmp_path, with_y, 0.1, 2.0), [b"a c"])[0]
    best = {words: features for words, _, features in found[0]}
    worse = {words: features for words, _, features in without}
    assert best[b"A", b"C"]["LM1"] > worse[b"A", b"C"]["LM1"] + 0.1


def test_unknown_words_have_an_unknown_factor(tmp_path):
    table = TABLE.replace("a ||| A|y ||| 0.4\n", "")
    found = []
    for text in ([b"x UNK y", b"x UNK"], [b"x z y", b"x z"]):
        write_model(tmp_path / "lm1", text)
        [[best, *_]] = lists(system(tmp_path, table, 0.1, 1.0), [b"a new"])
        assert best[0] == (b"A", b"new")
        found.append(best[2])
    known, unknown = found
    assert known.pop("LM1") > unknown.pop("LM1") + 0.1
    assert known == pytest.approx(unknown)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("factor=1 ", "factor=2 "), "line 10: expected factor=0, 1, found factor=2"),
        (
            ("output-factor=0,1", "output-factor=1,0"),
            "line 8: expected output-factor=0,1, found 1,0",
        ),
        (("output-factor=0,1", "output-factor=0"), "line 10: expected factor=0, found factor=1"),
        (("[input-factors]\n0", "[input-factors]\n0\n1"), "expected 0 alone: one factor"),
    ],
)
def test_systems_that_cannot_be_decoded(tmp_path, change, message):
    write_model(tmp_path / "lm1", TEXT)
    system(tmp_path, TABLE, 0.5, 0.5)
    ini = (tmp_path / "ini").read_text()
    assert change[0] in ini
    (tmp_path / "ini").write_text(ini.replace(*change))
    with pytest.raises(MosesFeatureError, match=message):
        System.of_ini(MosesIni.read(tmp_path / "ini"))


def test_words_with_too_few_factors(tmp_path):
    write_model(tmp_path / "lm1", TEXT)
    for word in ("B", "B|", "|x", "B||x"):
        of = system(tmp_path, TABLE.replace("B|x ||| 0.6", f"{word} ||| 0.6"), 0.5, 0.5)
        with pytest.raises(FormatError, match="line 5: expected target words of 2 factors that"):
            EmbeddedDecoder(of, [[b"b"]])
    of = system(tmp_path, TABLE.replace("||| 0.6", "||| 0.6 ||| 0-7"), 0.5, 0.5)
    with pytest.raises(FormatError, match="table at line 5: "):
        EmbeddedDecoder(replace(of, alignments=True), [[b"b"]])
    whole = EmbeddedDecoder(system(tmp_path, TABLE, 0.5, 0.5), [[b"b"]])
    with pytest.raises(MosesFeatureError, match="a system of several target factors"):
        whole.force(0, [b"B"])


def test_a_token_without_a_first_factor(tmp_path):
    """It is copied, and has a link to itself, so that lists can have alignments."""
    write_model(tmp_path / "lm1", [b"x x y"])
    of = replace(system(tmp_path, "a ||| A|x ||| 0.5 ||| 0-0\n", 0.1, 2.0), alignments=True)
    found = EmbeddedDecoder(of, [[b"|", b"a"]]).translate(0, 5)
    assert sorted(found[0].links.split()) in ([b"0-0", b"1-1"], [b"0-1", b"1-0"])
