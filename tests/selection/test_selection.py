"""Data selection: lines of a domain, planted in a general corpus, come out on top."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from moses_feature.building.language_model import estimate
from moses_feature.selection.domain_models import DomainModel
from moses_feature.selection.selector import CorpusSide, SelectionSettings, Selector


def arpa(sentences, order: int) -> bytes:
    """Return the text of a language model."""
    return b"".join(estimate([[w.encode() for w in s] for s in sentences], order).arpa())


def sentences(words: str, count: int, seed: int) -> list[list[str]]:
    """Return chains of words, each of which is followed by its neighbours in `words`."""
    random = np.random.default_rng(seed)
    listed = words.split()
    found = []
    for _ in range(count):
        place, sentence = int(random.integers(len(listed))), []
        for _ in range(int(random.integers(4, 9))):
            sentence.append(listed[place % len(listed)])
            place += int(random.integers(1, 3))
        found.append(sentence)
    return found


NEWS, SPEECH = "der rat hat das gesetz heute beschlossen", "ich hab das ja heute gesagt du"
NEUES, PAROLE = "le conseil a la loi aujourd hui", "moi je la dis bien aujourd toi"


@pytest.fixture
def corpus(tmp_path):
    """Write a bitext of 400 pairs, of which 60 are of the domain, and in-domain texts."""
    random = np.random.default_rng(3)
    planted = np.sort(random.choice(400, 60, replace=False))
    for name, general, domain, seed in (("c.de", SPEECH, NEWS, 1), ("c.fr", PAROLE, NEUES, 2)):
        lines = sentences(general, 400, seed)
        for place, sentence in zip(planted, sentences(domain, 60, seed + 10), strict=True):
            lines[place] = sentence
        write(tmp_path / name, lines)
        write(tmp_path / name.replace("c.", "in."), sentences(domain, 200, seed + 20))
        write(tmp_path / name.replace("c.", "dev."), sentences(domain, 50, seed + 30))
        write(tmp_path / name.replace("c.", "all."), sentences(general, 200, seed + 40))
    return planted


def write(path: Path, lines: list[list[str]]) -> None:
    path.write_text("".join(" ".join(words) + "\n" for words in lines))


def select(run, words: str, exit_code: int = 0):
    return run("text", "select", *words.split(), "--output-dir", "out", exit_code=exit_code)


def test_planted_pairs_come_out_on_top(tmp_path, corpus, run):
    result = select(run, "c.de c.fr --in-domain in.de --in-domain in.fr --lines 60")
    scores = np.loadtxt(tmp_path / "out" / "scores.gz")
    best = np.sort(np.argsort(scores, kind="stable")[:60])
    assert np.isin(best, corpus).mean() > 0.95
    for name in ("c.de", "c.fr"):
        lines = (tmp_path / name).read_text().splitlines(keepends=True)
        kept = (tmp_path / "out" / name).read_text().splitlines(keepends=True)
        assert kept == [lines[place] for place in best]
    assert "60 of 400 lines" in result.stderr


@pytest.mark.usefixtures("corpus")
def test_models_in_files(tmp_path, run):
    """One side, ARPA models, and scores that are cross-entropy differences."""
    for name in ("in.de", "all.de"):
        text = [line.split() for line in (tmp_path / name).read_text().splitlines()]
        (tmp_path / f"{name}.arpa").write_bytes(arpa(text, 3))
    with gzip.open(tmp_path / "in.gz", "wb") as file:
        file.write((tmp_path / "in.de.arpa").read_bytes())
    select(run, "c.de --in-domain in.gz --general all.de.arpa --words 300")
    inside, general = (DomainModel(tmp_path / f"{name}.de.arpa") for name in ("in", "all"))
    lines = [line.split() for line in (tmp_path / "c.de").read_bytes().splitlines()]
    expected = [inside.cross_entropy(words) - general.cross_entropy(words) for words in lines]
    scores = np.loadtxt(tmp_path / "out" / "scores.gz")
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    kept = (tmp_path / "out" / "c.de").read_text().split()
    assert 280 < len(kept) <= 300


@pytest.mark.usefixtures("corpus")
def test_a_development_text_decides(tmp_path, run):
    result = select(
        run,
        f"{BOTH} --held-out-text dev.de --held-out-text dev.fr",
    )
    kept = len((tmp_path / "out" / "c.de").read_text().splitlines())
    assert kept in (50, 100)  # of 60 that are planted
    assert result.stderr.count("perplexity of the development texts") == 7


@pytest.mark.usefixtures("corpus")
def test_bad_pairs_are_counted_and_left_out(tmp_path, run):
    de, fr = ((tmp_path / name).read_bytes() for name in ("c.de", "c.fr"))
    (tmp_path / "c.de").write_bytes(b"\nx\n" + de)
    (tmp_path / "c.fr").write_bytes(b"le\n" + b"le " * 10 + b"\n" + fr)
    result = select(run, "c.de c.fr --in-domain in.de --in-domain in.fr --lines 9999")
    assert "400 of 402 lines" in result.stderr
    assert "1 with an empty side, 1 of unequal lengths" in result.stderr
    with gzip.open(tmp_path / "out" / "scores.gz") as file:
        assert file.read().split(b"\n")[:2] == [b"empty", b"ratio"]
    assert (tmp_path / "out" / "c.fr").read_bytes() == fr


BOTH = "c.de c.fr --in-domain in.de --in-domain in.fr"


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("c.de c.fr --in-domain in.de --lines 3", 2, "--in-domain: expected 2"),
        (BOTH, 2, "expected one of --lines, --words and --held-out-text"),
        (f"{BOTH} --lines 3 --words 3", 2, "expected one of --lines"),
        (BOTH.replace("c.fr", "c.de") + " --lines 3", 2, "texts of different names"),
        (BOTH.replace("c.fr", "-") + " --lines 3", 2, "found -"),
        (BOTH.replace("c.fr", "missing") + " --lines 3", 1, "missing"),
    ],
)
def test_commands_that_make_no_sense(tmp_path, run, words, code, message):
    result = select(run, words, exit_code=code)
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("corpus")
def test_sides_of_unequal_lengths(tmp_path, run):
    (tmp_path / "c.fr").write_text("le\n")
    result = select(run, f"{BOTH} --lines 3", exit_code=1)
    assert "c.fr at line 2: expected as many lines" in result.stderr


@pytest.mark.usefixtures("corpus")
def test_models_that_do_not_fit(tmp_path, run):
    alone = "in.arpa is a model: give another one by --general"
    (tmp_path / "in.arpa").write_bytes(arpa([["a"]], 2))
    result = select(run, "c.de --in-domain in.arpa --lines 1", exit_code=2)
    assert alone in result.stderr
    result = select(run, "c.de --in-domain in.de --general in.arpa --lines 1", exit_code=2)
    assert "expected two models or two texts" in result.stderr
    (tmp_path / "in.arpa").write_text("\\data\\\nnonsense\n")
    result = select(run, "c.de --in-domain in.arpa --general in.arpa --lines 1", exit_code=1)
    assert "expected a language model for KenLM" in result.stderr
    result = select(run, "c.de --in-domain in.arpa --lines 1", exit_code=2)
    assert alone in result.stderr


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize("content", ["", "\n\n"])
def test_texts_without_words(tmp_path, run, content):
    (tmp_path / "empty").write_text(content)
    for words in (
        "c.de --in-domain empty --lines 1",
        "c.de --in-domain in.de --general empty --lines 1",
        "c.de --in-domain in.de --held-out-text empty",
        "empty --in-domain in.de --lines 1",
    ):
        result = select(run, words, exit_code=1)
        assert "empty: expected words, found none" in result.stderr, result.stderr


@pytest.mark.usefixtures("corpus")
def test_drawn_sentences_depend_on_the_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores = [
        Selector([CorpusSide("c.de", "in.de")], SelectionSettings(lines=1, seed=seed)).rank().scores
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
