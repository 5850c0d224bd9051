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
from moses_feature.phrases.settings import FeedForwardSizes, Sizes
from moses_feature.rnnsearch.settings import SearchSizes

CPU = torch.device("cpu")
SMALL = ("--hidden", 13, "--embedding", 5, "--rank", 3)
GRU = (*SMALL, "--maxout", 7)
FEED_FORWARD = ("--architecture", "feed-forward", *SMALL, "--positions", 4)
SEARCH = ("--architecture", "rnnsearch", *SMALL[:4], "--alignment-units", 11, "--maxout", 7)


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "table").write_bytes(LONG_TABLE)
    return "table"


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ((*GRU, "--unit", "lstm"), Sizes(13, 5, 7, 3, "lstm")),
        ((*GRU, "--unit", "leaky-50"), Sizes(13, 5, 7, 3, "leaky-50")),
        ((*GRU, "--sampled-words", 5), Sizes(13, 5, 7, 3)),
        (FEED_FORWARD, FeedForwardSizes(13, 5, 3, 4)),
        (SEARCH, SearchSizes(13, 5, 11, 7)),
        (
            (*FEED_FORWARD, "--self-normalisation", 0.1, "--sampled-words", 5),
            FeedForwardSizes(13, 5, 3, 4),
        ),
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
    described = run("model", "describe", "m").stdout
    assert described.startswith("architecture ")
    assert ("feed-forward" in described.splitlines()[0]) == isinstance(sizes, FeedForwardSizes)
    assert ("alignment units        11" in described) == isinstance(sizes, SearchSizes)
    assert ("alignment units        11" in described) == isinstance(sizes, SearchSizes)
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


@pytest.mark.parametrize("options", [FEED_FORWARD, GRU])
def test_nothing_to_score(run, tmp_path, table, options):
    """An empty table, a text without its phrases, and a fold that has no line of a part."""
    run("model", "train", table, "m", *options, "--updates", 3)
    run("model", "train", table, "folds", *options, "--updates", 2, "--folds", 3)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"none of these\n")
    one = LONG_TABLE.splitlines(keepends=True)[0]
    (tmp_path / "one").write_bytes(one)
    run("augment-phrase-table", "empty", "out1", "--model", "m")
    run("augment-phrase-table", table, "out2", "--model", "m", "--phrases-of", "text")
    assert (tmp_path / "out1").read_bytes() == (tmp_path / "out2").read_bytes() == b""
    run("augment-phrase-table", "one", "out3", "--model", "folds")
    run("augment-phrase-table", table, "whole", "--model", "folds")
    first = (tmp_path / "whole").read_bytes().splitlines(keepends=True)[0]
    assert (tmp_path / "out3").read_bytes() == first
    pair = b"\t".join(side.strip() for side in one.split(b"|||")[:2])
    assert float(run("model", "score", "folds", stdin=pair + b"\n").stdout) < 0


def test_what_cannot_be_is_refused(run, table):
    wrong = run("model", "train", table, "m", *FEED_FORWARD, "--unit", "lstm", exit_code=2)
    assert "--unit: the network of this --architecture has no such size" in wrong.stderr
    wrong = run("model", "train", table, "m", *GRU, "--positions", 4, exit_code=2)
    assert "--positions: the network of this --architecture has no such size" in wrong.stderr
    wrong = run("model", "train", table, "m", *GRU, "--unit", "relu", exit_code=2)
    assert "leaky-25" in wrong.stderr
    wrong = run("model", "train", table, "m", *GRU, "--sampled-words", 0, exit_code=2)
    assert "--sampled-words" in wrong.stderr
