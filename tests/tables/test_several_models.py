"""Columns of several models in one pass: each as if it were alone, whatever the order of work."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from helpers.equations import reference_log_probs
from helpers.files import read_gz, write_gz
from helpers.models import random_model
from helpers.tables import LONG_TABLE

from moses_feature.moses.phrase_table import tokens
from moses_feature.networks.direction import Direction
from moses_feature.phrases.model import load_model, save_model
from moses_feature.tables import augment as augment_module

REVERSE = Direction(reverse=True)
MODELS = "--model", "forward=f", "--model", "back=r", "--model", "both=f", "--model", "both=g"


@pytest.fixture
def models(tmp_path):
    for name, model in (
        ("f", random_model()),
        ("g", random_model(seed=2)),
        ("r", random_model(seed=3, direction=REVERSE)),
    ):
        save_model(tmp_path / name, model)
    write_gz(tmp_path / "in.gz", LONG_TABLE)


def columns_of(table: bytes) -> np.ndarray:
    return np.array(
        [[float(value) for value in line.split(b" ||| ")[2].split()] for line in table.splitlines()]
    )


def added(path, before: int) -> np.ndarray:
    return columns_of(read_gz(path))[:, before:]


@pytest.mark.usefixtures("models")
def test_columns_against_each_model_alone_and_the_equations(run, tmp_path):
    old = columns_of(LONG_TABLE).shape[1]
    run("augment-phrase-table", "in.gz", "out.gz", *MODELS)
    found = added(tmp_path / "out.gz", old)
    described = json.loads((tmp_path / "out.features.json").read_text())
    assert [column["name"] for column in described["columns"]] == [
        "forward: p(target|source)",
        "forward: exp(-unknown target words)",
        "back: p(source|target)",
        "both: p(target|source)",
        "both: exp(-unknown target words)",
    ]
    assert [len(model) for model in described["models"]] == [2, 2, 3]
    for name, columns in (("f", slice(0, 2)), ("r", slice(2, 3))):
        run("augment-phrase-table", "in.gz", f"{name}.gz", "--model", name)
        np.testing.assert_array_equal(added(tmp_path / f"{name}.gz", old), found[:, columns])
    loaded = {name: load_model(tmp_path / name) for name in "fgr"}
    for row, line in list(enumerate(LONG_TABLE.splitlines()))[::97]:
        source, target = (tokens(field) for field in line.split(b"|||")[:2])
        back = loaded["r"].source.ids(target), loaded["r"].target.ids(source)
        assert np.log(found[row, 2]) == pytest.approx(
            reference_log_probs(loaded["r"], *back).sum(), abs=1e-4
        )
        ids = loaded["f"].source.ids(source), loaded["f"].target.ids(target)
        of_words = [reference_log_probs(loaded[name], *ids) for name in "fg"]
        mean = np.log(np.exp(of_words).mean(axis=0)).sum()
        assert np.log(found[row, 3]) == pytest.approx(mean, abs=1e-4)


@pytest.mark.usefixtures("models")
def test_the_same_bytes_whatever_the_parts(run, tmp_path, monkeypatch):
    how = *MODELS, "--device", "cpu"  # a GPU's last digit depends on what is scored together
    run("augment-phrase-table", "in.gz", "whole.gz", *how)
    whole = gzip.decompress((tmp_path / "whole.gz").read_bytes())
    for lines in (29, 211):
        monkeypatch.setattr(augment_module, "LINES_PER_PART", lines)
        run("augment-phrase-table", "in.gz", "parts.gz", *how, "--threads", 2)
        assert gzip.decompress((tmp_path / "parts.gz").read_bytes()) == whole


@pytest.mark.usefixtures("models")
def test_what_reads_such_a_table(run, tmp_path):
    """A report takes the first p(target | source); the ini gets all weights."""
    table = b"".join(
        b"%b ||| %b ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 9 9 9\n" % pair
        for pair in ((b"a", b"A"), (b"a", b"B"), (b"b", b"B"))
    )
    (tmp_path / "t").write_bytes(table)
    run("augment-phrase-table", "t", "out", *MODELS)
    run("table", "report", "out", "f")
    run("augment-phrase-table", "t", "turned", "--model", "back=r", *MODELS[:2], "--model", "m=g")
    run("table", "report", "turned", "f")
    refused = run("table", "report", "turned", "r", exit_code=1)
    assert "to have scored the table's first p(target | source)" in refused.stderr
    run("augment-phrase-table", "t", "mean", *MODELS[4:])
    run("table", "report", "mean", "g")
    assert "The column is the mean of 2 networks" in (tmp_path / "report.html").read_text()
    (tmp_path / "moses.ini").write_text(
        "[feature]\nPhraseDictionaryMemory name=T num-features=4 path=t input-factor=0 "
        "output-factor=0\n[weight]\nT= 1 1 1 1\n"
    )
    run("system", "add", "moses.ini", "new.ini", "--table", "out")
    assert "T= 1 1 1 1 0.1 0.1 0.1 0.1 0.1" in (tmp_path / "new.ini").read_text()


@pytest.mark.usefixtures("models")
def test_errors(run, tmp_path):
    def refused(*options: str) -> str:
        message = run("augment-phrase-table", "in.gz", "out.gz", *options, exit_code=2).stderr
        assert not (tmp_path / "out.gz").exists()
        return message

    assert "several models need names" in refused("--model", "f", "--model", "x=g")
    assert "the name of letters" in refused("--model", "f f=f")
    assert "expected NAME=DIRECTORY" in refused("--model", "f=")
    assert "expected the shortlists, words and direction of f" in refused(
        "--model", "m=f", "--model", "m=r"
    )
    other = random_model()
    save_model(tmp_path / "o", replace(other, escaped=False))
    assert "to be averaged with it as m" in refused("--model", "m=f", "--model", "m=o")
    shutil.rmtree(tmp_path / "g")
    run("augment-phrase-table", "in.gz", "out.gz", "--model", "m=g", exit_code=1)


def test_a_network_that_learns_backwards(run, tmp_path):
    """Its shortlists are turned, and what it reads comes in the same order as what it scores."""
    lines = b"".join(b"w%d x\tv%d\n" % (n % 5, n % 5) for n in range(60))
    (tmp_path / "pairs").write_bytes(lines)
    sizes = "--sizes", "hidden=12 embedding=8 maxout=8 rank=6"
    budget = "--updates", 300, "--learning-rate", 0.01, "--evaluate-every", 100
    run("model", "train", "pairs", "m", "--reverse", *sizes, *budget)
    model = load_model(tmp_path / "m")
    assert model.direction == REVERSE
    assert sorted(model.source.shortlist) == [b"v%d" % n for n in range(5)]
    assert b"x" in model.target.shortlist
    scores = run("model", "score", "m", stdin=b"w1 x\tv1\nw2 x\tv1\nw1\tv1\n").stdout.split()
    right, wrong, short = map(float, scores)
    assert right > max(wrong, short) + 2
    run("augment-phrase-table", "pairs", "out", "--model", "m", exit_code=1)
