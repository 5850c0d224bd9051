"""RNNsearch as the scorer of phrase tables: against the equations, and the same bytes always."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.equations import random_pairs, search_log_probs
from helpers.models import SEARCH_SIZES, random_model
from helpers.tables import LONG_TABLE

from moses_feature.networks import phrases
from moses_feature.networks.direction import Direction
from moses_feature.networks.phrases import Phrases
from moses_feature.phrases.model import save_model
from moses_feature.phrases.packing import pack_ids
from moses_feature.phrases.scorer import scorer_of
from moses_feature.runtime.errors import UsageError
from moses_feature.sentences.scorer import SentenceModel

CPU = torch.device("cpu")


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "table").write_bytes(LONG_TABLE)
    return "table"


SIZES = ("--hidden", 13, "--embedding", 5, "--alignment-units", 11, "--maxout", 7)


def test_scorer_follows_the_equations(monkeypatch):
    """In pieces of any size, by any number of threads, to the bit."""
    model = random_model(SEARCH_SIZES)
    pairs = random_pairs(model, 61, 6)
    pairs += [(source, target) for source, _ in pairs[:7] for _, target in pairs[:7]]
    packed = pack_ids(*(Phrases.pack(side) for side in zip(*pairs, strict=True)))
    found = scorer_of(model, CPU).score_packed(packed)
    for row, (source, target) in enumerate(pairs):
        expected, _ = search_log_probs(model, source, target)
        of_words = found.word_log_probs[found.offsets[row] : found.offsets[row + 1]]
        np.testing.assert_allclose(of_words, expected, atol=2e-5)
    for together, threads in ((1, 1), (7, 3), (1000, 2)):
        monkeypatch.setattr(phrases, "ROOTS_TOGETHER", together)
        other = scorer_of(model, CPU, threads=threads).score_packed(packed)
        assert np.array_equal(other.word_log_probs, found.word_log_probs)


def test_what_cannot_be_is_refused(run, tmp_path, table):
    wrong = run(
        "model", "train", table, "m", "--architecture", "rnnsearch", "--rank", 3, exit_code=2
    )
    assert "--rank: the network of this --architecture has no such size" in wrong.stderr
    wrong = run("model", "train", table, "m", "--alignment-units", 3, exit_code=2)
    assert "--alignment-units: the network of this --architecture has no such size" in wrong.stderr
    options = ("--architecture", "rnnsearch", "--preset", "supplement")
    wrong = run("model", "train", table, "m", *options, exit_code=2)
    assert "expected paper or small for this network" in wrong.stderr
    model = random_model(SEARCH_SIZES)
    with pytest.raises(UsageError, match="scored in float32, found bfloat16"):
        scorer_of(model, CPU, "bfloat16")
    save_model(tmp_path / "r", random_model(SEARCH_SIZES, direction=Direction(reverse=True)))
    found = float(run("model", "score", "r", stdin=b"a\tA\n").stdout)
    scorer = SentenceModel(tmp_path / "r")
    expected = scorer.log_probs([scorer.ids([b"a"], [b"A"])]).item()
    assert found == pytest.approx(expected, abs=1e-5)
