"""The quickstart example: same seed, same files; a table and a model that hold together."""

from __future__ import annotations

import gzip
import importlib
import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.files import EXAMPLE

from moses_feature.moses.alignments import links_of
from moses_feature.moses.ini import MosesIni
from moses_feature.tables.check import check_table


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("quickstart")
    make(directory, seed=1)
    return directory


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return lambda name: importlib.import_module(name)


def make(directory: Path, seed: int) -> None:
    subprocess.run(
        [sys.executable, EXAMPLE / "make.py", "--directory", directory, "--seed", str(seed)],
        check=True,
    )


def test_moses_would_read_it(data):
    assert check_table(data / "phrase-table.gz") == []
    assert MosesIni.read(data / "moses.ini").table().score_count == 4
    for part, size in (("train", 3000), ("dev", 500), ("test", 1000)):
        for side in ("en", "fr"):
            assert len((data / f"{part}.{side}").read_text().splitlines()) == size


def test_the_links_are_those_of_the_words(data):
    names = "train.en", "train.fr", "aligned.grow-diag-final-and"
    texts = [(data / name).read_bytes().splitlines() for name in names]
    linked = 0
    for source, target, links in zip(*texts, strict=True):
        linked += len(links_of(links, len(source.split()), len(target.split())))
    assert linked > 10_000


@pytest.mark.slow
def test_the_seed_decides(data, tmp_path):
    make(tmp_path / "same", seed=1)
    make(tmp_path / "other", seed=2)
    for name in ("train.fr", "phrase-table.gz", "lm.fr.arpa"):
        assert (tmp_path / "same" / name).read_bytes() == (data / name).read_bytes()
        assert (tmp_path / "other" / name).read_bytes() != (data / name).read_bytes()


def test_relative_frequencies_sum_to_one(data):
    totals: dict[bytes, float] = {}
    for line in gzip.decompress((data / "phrase-table.gz").read_bytes()).splitlines():
        source, _, scores, *_ = line.split(b" ||| ")
        totals[source] = totals.get(source, 0.0) + float(scores.split()[2])
    assert all(total == pytest.approx(1, abs=1e-4) for total in totals.values())


def test_extraction_against_its_definition(example):
    """A phrase pair has a link, and no link leads out of it."""
    grammar, extraction = example("grammar"), example("phrase_extraction")
    links = frozenset({(0, 1), (1, 0), (2, 4), (4, 3)})
    sentence = grammar.Pair(tuple("abcde"), tuple("VWXYZ"), links)
    expected = set()
    spans = list(itertools.combinations(range(6), 2))
    for (a, b), (c, d) in itertools.product(spans, spans):
        inside = {link for link in links if a <= link[0] < b}
        if inside and inside == {link for link in links if c <= link[1] < d}:
            phrase_links = tuple(sorted((i - a, j - c) for i, j in inside))
            expected.add((tuple("abcde"[a:b]), tuple("VWXYZ"[c:d]), phrase_links))
    found = list(extraction.phrase_pairs(sentence))
    assert len(found) == len(set(found))
    assert set(found) == expected


def read_arpa(path: Path) -> dict[tuple[str, ...], tuple[float, float]]:
    ngrams = {}
    for line in path.read_text().splitlines():
        if line.count("\t"):
            log_probability, words, *back_off = line.split("\t")
            weight = float(back_off[0]) if back_off else 0.0
            ngrams[tuple(words.split(" "))] = float(log_probability), weight
    return ngrams


def test_language_model_is_a_distribution(data):
    ngrams = read_arpa(data / "lm.fr.arpa")
    words = [ngram[0] for ngram in ngrams if len(ngram) == 1 and ngram != ("<s>",)]

    def log10(context: tuple[str, ...], word: str) -> float:
        if (*context, word) in ngrams:
            return ngrams[*context, word][0]
        return ngrams.get(context, (0.0, 0.0))[1] + log10(context[1:], word)

    for context in ((), ("<s>",), ("le",), ("<s>", "le"), ("un", "chien"), ("<unk>",)):
        assert sum(10 ** log10(context, word) for word in words) == pytest.approx(1, abs=1e-4)
