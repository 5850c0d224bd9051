"""RNNsearch as the scorer of phrase tables: against the equations, and the same bytes always."""

from __future__ import annotations

import pytest
import torch
from helpers.models import SEARCH_SIZES, random_model
from helpers.tables import LONG_TABLE

from moses_feature.networks.direction import Direction
from moses_feature.phrases.model import save_model
from moses_feature.sentences.scorer import SentenceModel

CPU = torch.device("cpu")


def test_a_network_for_sentences_does_not_score_tables(run, tmp_path):
    (tmp_path / "table").write_bytes(LONG_TABLE)
    save_model(tmp_path / "m", random_model(SEARCH_SIZES))
    refused = run("augment-phrase-table", "table", "out", "--model", "m", exit_code=2)
    assert "expected a network for phrases" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_scores_of_pairs(run, tmp_path):
    save_model(tmp_path / "r", random_model(SEARCH_SIZES, direction=Direction(reverse=True)))
    found = float(run("model", "score", "r", stdin=b"a\tA\n").stdout)
    scorer = SentenceModel(tmp_path / "r")
    expected = scorer.log_probs([scorer.ids([b"a"], [b"A"])]).item()
    assert found == pytest.approx(expected, abs=1e-5)
