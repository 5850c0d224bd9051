"""Networks that tables can be scored with, by the commands: the same bytes always."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.tables import LONG_TABLE

from moses_feature.phrases.model import load_model
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.settings import Sizes

CPU = torch.device("cpu")
GRU = ("--sizes", "hidden=13 embedding=5 rank=3 maxout=7")


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "table").write_bytes(LONG_TABLE)
    return "table"


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        (
            (*GRU, "--unit", "lstm"),
            Sizes(13, 5, 7, 3, "lstm"),
        ),
        ((*GRU, "--softmax-samples", 5), Sizes(13, 5, 7, 3)),
    ],
)
def test_a_table_is_trained_on_and_augmented(run, tmp_path, table, options, sizes):
    """A resumed training ends with the same network; threads do not change the columns."""
    run("model", "train", table, "whole", *options, "--updates", 6, "--seed", 3)
    run("model", "train", table, "m", *options, "--updates", 2, "--seed", 3)
    run("model", "train", table, "m", *options, "--updates", 6, "--seed", 3, "--resume")
    model = load_model(tmp_path / "m")
    assert model.network.sizes == sizes
    for name, weights in load_model(tmp_path / "whole").network.state_dict().items():
        assert torch.equal(weights, model.network.state_dict()[name])
    described = run("describe", "m").stdout
    assert described.startswith("architecture ")
    outputs = []
    for threads in (1, 2):
        name = f"out{threads}.gz"
        run("augment-phrase-table", table, name, "--model", "m", "--threads", threads)
        outputs.append(gzip.decompress((tmp_path / name).read_bytes()))
    assert outputs[0] == outputs[1]
    line = outputs[0].splitlines()[0].split(b" ||| ")
    log_prob = scorer_of(model, CPU).score([(line[0].split(), line[1].split())]).log_probs[0]
    assert float(line[2].split()[-2]) == pytest.approx(min(1.0, np.exp(log_prob)), rel=1e-4)
    samples = run("model", "sample", "m", "--samples", 3, stdin=b"a\n").stdout
    assert samples == run("model", "sample", "m", "--samples", 3, stdin=b"a\n").stdout


def test_nothing_to_score(run, tmp_path, table):
    """An empty table, and a text without its phrases."""
    run("model", "train", table, "m", *GRU, "--updates", 3)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"none of these\n")
    run("augment-phrase-table", "empty", "out1", "--model", "m")
    run("augment-phrase-table", table, "out2", "--model", "m", "--phrases-of", "text")
    assert (tmp_path / "out1").read_bytes() == (tmp_path / "out2").read_bytes() == b""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sizes", "hidden=13 layers=4"), "layers"),
        (("--unit", "relu"), "relu"),
        (("--softmax-samples", 0), "--softmax-samples"),
    ],
)
def test_what_cannot_be_is_refused(run, table, options, message):
    assert message in run("model", "train", table, "m", *options, exit_code=2).stderr
