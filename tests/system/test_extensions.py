"""A new metric, or a new network family, is one module or folder and one line in a registry."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest
import torch
from helpers.extensions import TWIN, TwinSizes

from mert.optimisers.choice import optimizer
from mert.tuning.tune_lists import features_of, tune_lists
from moses_feature.metrics import METRICS, metric_of
from moses_feature.networks.architectures import ARCHITECTURES, SENTENCE_ARCHITECTURES
from moses_feature.rescoring.features import named_model, scorers_of
from moses_feature.rescoring.source import SourceText
from moses_feature.sentences.settings import SentenceData, SentenceSettings, recipes
from moses_feature.sentences.training import train_sentences


@pytest.mark.parametrize("algorithm", ["mert", "mira"])
def test_a_metric(tmp_path, monkeypatch, algorithm):
    """Weights are tuned for it, not for the metric with as many statistics."""
    monkeypatch.setitem(METRICS, "longest", "helpers.extensions:LONGEST")
    generator = np.random.default_rng(1)
    lines, references = [], []
    for sentence in range(40):
        references.append((b"a", b"bb", b"longest"))
        for words in ("a bb x", "y z longest", "a z x"):
            right = float("longest" in words), float(words == "a bb x")
            values = (value + generator.normal(0, 0.2) for value in right)
            lines.append(f"{sentence} ||| {words} ||| F= {' '.join(map(str, values))} ||| 0\n")
    lists = tmp_path / "lists"
    lists.write_text("".join(lines))
    start = {"F": (0.1, 0.9)}
    tuned = tune_lists(
        lists,
        features_of(lists, start=start),
        [(reference,) for reference in references],
        optimizer(algorithm),
        seed=1,
        metric=metric_of("longest"),
    )
    assert tuned.first == 0
    assert tuned.tuned > 90


class Words(NamedTuple):
    words: list[bytes]
    links: None = None


@pytest.fixture
def twin(monkeypatch):
    monkeypatch.setitem(ARCHITECTURES, "twin", TWIN)
    SENTENCE_ARCHITECTURES.append("twin")
    yield
    SENTENCE_ARCHITECTURES.remove("twin")


@pytest.mark.usefixtures("twin")
def test_a_network(tmp_path):
    """It is trained, saved, named, loaded without torch, and scores lists."""
    for name, words in (("source", "a b"), ("target", "A B")):
        (tmp_path / name).write_text("".join(f"{words} {n}\n" for n in range(60)))
    assert recipes()["twin"].presets
    settings = SentenceSettings(sizes=TwinSizes(6, 5, 4, 3), updates=2, batch_size=10)
    data = SentenceData(str(tmp_path / "source"), str(tmp_path / "target"), min_count=1)
    model = tmp_path / "model"
    train_sentences(data, settings, model, torch.device("cpu"))
    assert json.loads((model / "config.json").read_text())["architecture"] == "twin"
    assert named_model(str(model)) == ("Twin0", str(model))
    source = SourceText([b"a b 1"], "source")
    (scorer,) = scorers_of([("Twin0", str(model))], source)
    scores = scorer.scores([(0, [Words([b"A", b"B", b"1"]), Words([b"B"])])])
    assert len(scores) == 2
    assert max(scores) < 0
