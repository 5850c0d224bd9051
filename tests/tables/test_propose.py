"""Proposed pairs: what they are, where they stand, and that nothing else has changed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from helpers.models import SEARCH_SIZES, random_model

from moses_feature.moses.words import WordOptions
from moses_feature.networks.direction import Direction
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import save_model
from moses_feature.tables.propose import FLAG

TABLE = b"".join(
    sorted(
        b"%b ||| %b ||| 0.5 0.5 0.3 0.5 ||| 0-0 ||| 9 9 9 ||| |||\n" % (source, target)
        for source in (b"a", b"a b", b"the dog")
        for target in (b"A", b"A B", b"chien noir")
    )
)
TEXT = b"a b the dog\nzzz c a\nd |||x\n"


def fields_of(content: bytes) -> list[list[bytes]]:
    return [line.split(b" ||| ") for line in content.splitlines()]


def key(fields: list[bytes]) -> bytes:
    return b" ||| ".join(fields[:2]) + b" |||"


@pytest.fixture
def files(tmp_path, run):
    (tmp_path / "in").write_bytes(TABLE)
    (tmp_path / "text").write_bytes(TEXT)
    return run


@pytest.mark.parametrize("augmented", [False, True])
def test_what_is_proposed(files, tmp_path, model_directory, augmented):
    run = files
    if augmented:
        run("augment-phrase-table", "in", "table", "--model", model_directory)
    else:
        (tmp_path / "table").write_bytes(TABLE)
    options = "--phrases-of", "text", "--least", -9, "--beam", 30, "--best", 4, "--enough", 4
    result = run("table", "propose", "table", model_directory, "out.gz", *options)
    run("table", "propose", "table", model_directory, "out", *options)
    before, after = (fields_of((tmp_path / n).read_bytes()) for n in ("table", "out"))
    assert [key(fields) for fields in after] == sorted(key(fields) for fields in after)
    flags = [fields[2].split()[-1] for fields in after]
    old = [fields for fields, flag in zip(after, flags, strict=True) if flag == b"1"]
    new = [fields for fields, flag in zip(after, flags, strict=True) if flag == FLAG]
    assert len(old) + len(new) == len(after)
    assert [[*f[:2], b" ".join(f[2].split()[:-1]), *f[3:]] for f in old] == before
    assert new
    assert not {key(fields) for fields in new} & {key(fields) for fields in before}
    by_source: dict[bytes, list[list[bytes]]] = {}
    for fields in new:
        by_source.setdefault(fields[0], []).append(fields)
    phrases = {b"a", b"b", b"c", b"the", b"dog", b"a b", b"b the", b"the dog", b"a b the", b"d"}
    phrases |= {b"b the dog", b"a b the dog", b"c a"}
    assert set(by_source) <= phrases  # no `zzz`, which the network does not know
    assert {b"a", b"c", b"b the dog"} <= set(by_source)
    assert max(map(len, by_source.values())) == 4
    assert f"{len(new)} new lines for {len(by_source)} of" in result.stderr

    pairs = b"".join(fields[0] + b"\t" + fields[1] + b"\n" for fields in new)
    scores = [float(s) for s in run("model", "score", model_directory, stdin=pairs).stdout.split()]
    for fields, score in zip(new, scores, strict=True):
        values = [float(value) for value in fields[2].split()]
        assert values[:4] == [values[0]] * 4
        assert math.log(values[0]) == pytest.approx(score, abs=1e-4)
        assert score >= -9 * (len(fields[1].split()) + 1) - 1e-4
        assert values[4:-1] == ([values[0], 1.0] if augmented else [])
        links = [tuple(map(int, link.split(b"-"))) for link in fields[3].split()]
        assert {i for i, _ in links} == set(range(len(fields[0].split())))
        assert {j for _, j in links} == set(range(len(fields[1].split())))
    described = json.loads((tmp_path / "out.features.json").read_text())["columns"]
    assert described[-1] == {"name": "exp(proposed)", "index": 6 if augmented else 4}
    if augmented:  # the network's column is still that of the model that scored it
        run("table", "report", "out", model_directory)
    assert (
        "0 problems" in run("table", "check", "out").output
        or run("table", "check", "out").exit_code == 0
    )


def test_the_likeliest_new_ones_are_taken(files, tmp_path, model_directory):
    """Those that the beam finds, without those that the table has."""
    run = files
    (tmp_path / "text").write_bytes(b"a b\n")
    options = "--phrases-of", "text", "--least", -9, "--best", 3, "--enough", 9, "--beam", 40
    run("table", "propose", "in", model_directory, "out", *options)
    found = run("model", "sample", model_directory, "--beam", 40, "--best", 40, stdin=b"a b\n")
    targets = [line.split("\t")[1].encode() for line in found.stdout.splitlines()]
    has = {b"A", b"A B", b"chien noir", b""}
    expected = [t for t in targets if t not in has and b"<unk>" not in t.split()][:3]
    after = fields_of((tmp_path / "out").read_bytes())
    new = [f[1] for f in after if f[2].endswith(FLAG) and f[0] == b"a b"]
    assert sorted(new) == sorted(expected)


WORDS = [b"A", b"B", b"chien", b"noir", b"le"]
"""Some of the targets' words; the others are in no file."""


def plain_lexical(words, others, links, probabilities) -> float:
    product = 1.0
    for place, word in enumerate(words):
        linked = [others[o] for mine, o in links if mine == place] or [b"NULL"]
        product *= sum(probabilities.get((word, other), 1e-7) for other in linked) / len(linked)
    return product


@pytest.mark.parametrize("right_to_left", [False, True])
def test_attention_and_lexical_weights(files, tmp_path, right_to_left):
    """Links are the largest attention of a network that looks; lexical weights by hand."""
    run = files
    model = random_model(SEARCH_SIZES, direction=Direction(right_to_left=right_to_left))
    save_model(tmp_path / "s", model)
    generator = np.random.default_rng(1)
    of = {}
    for ending, firsts, seconds in (
        ("f2e", WORDS, [b"a", b"b", b"the", b"NULL"]),
        ("e2f", [b"a", b"b", b"the"], [*WORDS, b"NULL"]),
    ):
        of[ending] = {(w, o): round(generator.uniform(), 3) for w in firsts for o in seconds}
        lines = [b"%b %b %.3f\n" % (w, o, p) for (w, o), p in of[ending].items()]
        (tmp_path / f"lex.{ending}").write_bytes(b"".join(lines))
    options = "--phrases-of", "text", "--least", -30, "--beam", 20, "--lexical", "lex"
    run("table", "propose", "in", "s", "out", *options)
    new = [f for f in fields_of((tmp_path / "out").read_bytes()) if f[2].endswith(FLAG)]
    assert len({link for fields in new for link in fields[3].split()}) > 3
    for source, target, scores, alignment, *_ in new:
        words, others = target.split(), source.split()
        pairs = [tuple(map(int, link.split(b"-"))) for link in alignment.split()]
        ids = [model.source.ids(others), model.target.ids(words)]
        written = ids[1][::-1] if right_to_left else ids[1]
        inputs = torch.tensor([[*ids[0], END]]), torch.tensor([len(others)])
        with torch.inference_mode():
            annotations = model.network.annotations(*inputs)
            previous = torch.tensor([[END, *written]]).t()
            _, attention = model.network.decode(annotations, inputs[1], previous)
        places = attention[:-1, 0, : len(others)].argmax(dim=1).tolist()
        places = places[::-1] if right_to_left else places
        assert pairs == sorted((place, word) for word, place in enumerate(places))
        values = [float(value) for value in scores.split()]
        turned = [(t, s) for s, t in pairs]
        assert values[1] == pytest.approx(plain_lexical(others, words, pairs, of["e2f"]), rel=1e-5)
        assert values[3] == pytest.approx(plain_lexical(words, others, turned, of["f2e"]), rel=1e-5)
        assert values[0] == values[2]


@pytest.mark.parametrize("line", [b"a b\n", b"a b c\n", b"a b 1.5\n", b"a b 0.5 1\n"])
def test_damaged_lexical_files(files, tmp_path, model_directory, line):
    (tmp_path / "lex.f2e").write_bytes(b"a b 0.5\n" + line)
    (tmp_path / "lex.e2f").write_bytes(b"a b 0.5\n")
    options = "--phrases-of", "text", "--lexical", "lex"
    refused = files("table", "propose", "in", model_directory, "out", *options, exit_code=1)
    assert "lex.f2e at line 2: expected word, word and probability" in refused.stderr


def test_lexical_files_of_other_words(files, tmp_path, model_directory):
    """Empty ones, and the two files for each other, have nothing of what is asked for."""
    options = "--phrases-of", "text", "--least", -9, "--lexical", "lex"
    for content in (b"", b"x y 0.5\n"):
        for ending in ("f2e", "e2f"):
            (tmp_path / f"lex.{ending}").write_bytes(content)
        refused = files("table", "propose", "in", model_directory, "out", *options, exit_code=1)
        assert "lex.f2e: expected the words of new pairs, found none" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_lexical_weights_need_their_columns(files, tmp_path, model_directory):
    for ending in ("f2e", "e2f"):
        (tmp_path / f"lex.{ending}").write_bytes(b"a b 0.5\n")
    (tmp_path / "short").write_bytes(b"a ||| A ||| 0.5 0.5 ||| 0-0\n")
    options = "--phrases-of", "text", "--lexical", "lex"
    refused = files("table", "propose", "short", model_directory, "out", *options, exit_code=1)
    assert "short at line 1: expected four scores as Moses" in refused.stderr
    assert files("table", "propose", "in", model_directory, "lex.f2e", *options, exit_code=2)


def test_escapes_are_those_of_a_table(files, tmp_path):
    """A network that was trained on plain words writes escaped ones."""
    run = files
    plain = random_model()
    model = type(plain)(plain.network, plain.source, plain.target, WordOptions(), {}, False)
    save_model(tmp_path / "plain", model)
    options = "--phrases-of", "text", "--least", -30, "--best", 50, "--beam", 60
    run("table", "propose", "in", "plain", "out", *options)
    new = [f for f in fields_of((tmp_path / "out").read_bytes()) if f[2].endswith(FLAG)]
    targets = b" ".join(fields[1] for fields in new).split()
    assert b"&amp;apos;" in targets  # it was `&apos;` among the plain words
    assert b"&#91;1&#93;" in targets


def test_errors(files, tmp_path, model_directory):
    run = files
    options = "--phrases-of", "text"
    assert (
        "--phrases-of" in run("table", "propose", "in", model_directory, "out", exit_code=2).stderr
    )
    (tmp_path / "turned").write_bytes(b"".join(reversed(TABLE.splitlines(keepends=True))))
    refused = run("table", "propose", "turned", model_directory, "out", *options, exit_code=1)
    assert "turned at line 2: expected lines in the order of LC_ALL=C sort" in refused.stderr
    (tmp_path / "short").write_bytes(TABLE + b"the dog ||| zz ||| 0.5 ||| 0-0\n")
    refused = run("table", "propose", "short", model_directory, "out", *options, exit_code=1)
    assert "short at line 10: expected 4 scores" in refused.stderr
    save_model(tmp_path / "back", random_model(SEARCH_SIZES, direction=Direction(reverse=True)))
    refused = run("table", "propose", "in", "back", "out", *options, exit_code=2)
    assert "expected a network for p(target | source), found p(source | target)" in refused.stderr
    assert run("table", "propose", "in", model_directory, "in", *options, exit_code=2)
    assert not (tmp_path / "out").exists()
