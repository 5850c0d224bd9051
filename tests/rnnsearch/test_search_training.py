"""Training on sentence pairs: what is learnt, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from moses_feature.networks.direction import Direction
from moses_feature.phrases.model import load_model
from moses_feature.sentences.scorer import SentenceModel

WORDS = [b"one", b"two", b"three", b"four", b"five"]
SIZES = ("--sizes", "hidden=24 embedding=12 alignment=16 maxout=16")
PATIENT = ("--patience", 100, "--evaluate-every", 100)
QUICK = ("--batch-size", 20, "--learning-rate", 0.01, "--shortlist", 100)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Write sentences whose translation is word for word, the last word first."""
    generator = np.random.default_rng(1)
    source, target = [], []
    for _ in range(400):
        words = [WORDS[n] for n in generator.integers(0, len(WORDS), generator.integers(1, 5))]
        source.append(b" ".join(words))
        target.append(b" ".join(word.upper() for word in reversed(words)))
    (tmp_path / "source").write_bytes(b"\n".join(source) + b"\n")
    (tmp_path / "target").write_bytes(b"\n".join(target) + b"\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("texts")
def test_it_learns_to_translate(run):
    run(
        "model",
        "train-sentences",
        "source",
        "target",
        "m",
        *SIZES,
        *QUICK,
        *PATIENT,
        "--updates",
        1200,
    )
    generator = np.random.default_rng(2)
    lengths = generator.integers(2, 5, 50)
    text = [" ".join(generator.permutation(WORDS)[:n].astype(str)) for n in lengths]
    run("model", "translate", "m", "--alignment-out", "a", stdin="\n".join(text).encode())
    found = [json.loads(line) for line in Path("a").read_text().splitlines()]
    right = [x["target"] == [w.upper() for w in reversed(x["source"])] for x in found]
    assert np.mean(right) > 0.9
    described = run("describe", "m").stdout
    assert "alignment units        16" in described


@pytest.mark.usefixtures("texts")
def test_a_resumed_run_ends_with_the_same_bytes(run, tmp_path):
    options = (*SIZES, *QUICK, "--dropout", 0.2, "--evaluate-every", 4)
    run("model", "train-sentences", "source", "target", "whole", *options, "--updates", 12)
    run("model", "train-sentences", "source", "target", "parts", *options, "--updates", 6)
    again = ("model", "train-sentences", "source", "target", "parts", *options, "--updates", 12)
    assert "holds a model already" in run(*again, exit_code=2).stderr
    run(*again, "--resume")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


@pytest.mark.usefixtures("texts")
def test_directions(run, tmp_path):
    options = (*SIZES, *QUICK, "--updates", 2)
    run(
        "model",
        "train-sentences",
        "source",
        "target",
        "m",
        *options,
        "--reverse",
        "--right-to-left",
    )
    model = load_model(tmp_path / "m")
    assert model.direction == Direction(reverse=True, right_to_left=True)
    assert sorted(model.source.shortlist) == sorted(word.upper() for word in WORDS)
    assert sorted(model.target.shortlist) == sorted(WORDS)
    assert SentenceModel(tmp_path / "m").direction == model.direction
    assert "p(source | target), right to left" in run("describe", "m").stdout


def test_bad_texts(run, tmp_path):
    (tmp_path / "source").write_bytes(b"a b\nc\n\nd e f g\n")
    (tmp_path / "target").write_bytes(b"A B\nC\nX\n")
    refused = run("model", "train-sentences", "source", "target", "m", exit_code=1).stderr
    assert "source at line 4: expected as many lines in both texts, found the end of" in refused
    (tmp_path / "target").write_bytes(b"A B\nC\nX\nD\nE\n")
    refused = run("model", "train-sentences", "source", "target", "m", exit_code=1).stderr
    assert "target at line 5" in refused
    (tmp_path / "target").write_bytes(b"A B\nC\nX\nD\n")
    refused = run(
        "model", "train-sentences", "source", "target", "m", "--max-length", 1, exit_code=1
    ).stderr
    assert "expected sentence pairs to train on, found 1 of 1 to 1 words" in refused
    trained = run(
        "model", "train-sentences", "source", "target", "m", *SIZES, "--updates", 1
    ).stderr
    assert "3 different sentence pairs (1 were empty or too long)" in trained
    assert (
        "expected a file name, found -"
        in run("model", "train-sentences", "-", "target", "x", exit_code=2).stderr
    )
    assert not (tmp_path / "x").exists()
