"""`--estimate`: what the whole would take, and nothing written."""

from __future__ import annotations

import re

import pytest
from helpers.training import write_pairs

from moses_feature.cli.common.estimates import Trial, rate
from moses_feature.training.settings import RunSettings

TINY = ("--hidden", 7, "--embedding", 5, "--maxout", 3, "--rank", 2)


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr("moses_feature.cli.common.estimates.SECONDS", 0.3)
    monkeypatch.setattr("moses_feature.cli.tables.estimate.SAMPLE_LINES", 200)


def test_training(run, tmp_path):
    write_pairs(tmp_path / "pairs", 300)
    before = sorted(tmp_path.iterdir())
    shown = run(
        "model", "train", "pairs", "m", *TINY, "--minutes", 7, "--folds", 2, "--estimate"
    ).output
    assert "measured on the first 200 lines" in shown
    whole = r"in all 7 min at most( \([\d,]+ updates\))?, 2 t"
    assert re.search(r"training: reading .* pairs/s, an epoch .* " + whole, shown)
    assert "memory: about" in shown
    assert sorted(tmp_path.iterdir()) == before
    assert "which may be long" in run("model", "train", "pairs", "m", *TINY, "--estimate").output


def test_updates_of_a_budget():
    trial = Trial(seconds=2, a_second=200, epoch=1000, disk=1)
    settings = RunSettings(minutes=10, epochs=40, batch_size=50)
    assert rate(trial, settings, 1000, "pairs").endswith("in all 3 min at most (800 updates)")


def test_augmenting(run, tmp_path, model_directory):
    lines = [f"a b {n} ||| A B ||| 0.5 0.5\n" for n in range(150)]
    (tmp_path / "table").write_text("".join(lines))
    for more in ((*TINY, "--epochs", 2), ("--model", model_directory)):
        shown = run("augment-phrase-table", "table", "out.gz", *more, "--estimate").output
        assert "100% of all; the whole is about 150 lines with 150 unique pairs" in shown
        assert re.search(r"scoring: \d+ s\nthe new table: .* MB; .* are free in", shown)
        assert ("training: " in shown) == ("--epochs" in more)
        assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_models_of_texts(run, tmp_path):
    (tmp_path / "text").write_text("a b c\nb c\nc a b\n" * 30)
    (tmp_path / "other").write_text("A B C\nB C\nC A B\n" * 30)
    (tmp_path / "links").write_text("0-0 1-1\n" * 90)
    before = sorted(tmp_path.iterdir())
    for command, examples in (
        (("train-cslm", "text", "m"), "n-grams"),
        (("train-joint", "text", "other", "m", "--alignment", "links"), "n-grams"),
        (("train-sentences", "text", "other", "m", "--hidden", 3), "sentence pairs"),
    ):
        shown = run("model", *command, "--epochs", 5, "--estimate").output
        assert re.search(rf"training: reading \d+ s; .* {examples}/s, an epoch \d.* in all", shown)
        assert re.search(r"memory: about .*; the model and its checkpoint: .* on disk", shown)
    assert sorted(tmp_path.iterdir()) == before


def test_only_files(run, model_directory):
    words = ("augment-phrase-table", "-", "-", "--model", model_directory, "--estimate")
    assert "expected its name, found -" in run(*words, exit_code=2, stdin=b"").output


def test_bad_lines_and_options(run, tmp_path, model_directory):
    (tmp_path / "good").write_text("a ||| b ||| 1\n")
    (tmp_path / "bad").write_text("a ||| b ||| 1\na ||| b ||| x\n")
    shown = run("model", "train", "good", "bad", "m", *TINY, "--estimate", exit_code=1).output
    assert "bad at line 2: expected scores" in shown
    given = ("augment-phrase-table", "good", "model", "--model", model_directory, "--estimate")
    assert "scoring: " in run(*given).output
    assert "--model only scores" in run(*given, "--minutes", 5, exit_code=2).output
    assert "not with --resume" in run(*given, "--shard", "1/2", exit_code=2).output
