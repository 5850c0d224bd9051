"""Sizes that follow from the time: which they are, and that a run that has begun keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from helpers.training import write_pairs
from safetensors.torch import save_file

from moses_feature.networks.files import CHECKPOINT
from moses_feature.phrases.fitting import SMALLER, sizes_of_run
from moses_feature.phrases.settings import PRESETS, Sizes, TrainingData, TrainingSettings
from moses_feature.phrases.training import train
from moses_feature.training.trainer import RunControl, Trainer

MINUTES_OF_AN_EPOCH = {256: 4, 128: 2, 64: 1}
"""By the number of hidden units."""


def seconds_an_update(trainer: Trainer, updates: int) -> float:
    assert updates > 1
    minutes = MINUTES_OF_AN_EPOCH[trainer.network.sizes.hidden]
    return 60 * minutes / trainer.state.updates_per_epoch


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Train for an update, on a machine of a known speed; return the sizes of the network."""
    monkeypatch.setattr(Trainer, "seconds_an_update", seconds_an_update)
    data = TrainingData([str(write_pairs(tmp_path / "pairs.tsv", 400))])

    def train_an_update(model: Path, fits: bool = True, **budget) -> Sizes:
        settings = TrainingSettings(batch_size=17, **budget)
        control = RunControl(resume=model.exists(), stop=lambda: True)
        train(data, settings, model, torch.device("cpu"), control, fits=fits)
        found = sizes_of_run(model)
        assert found is not None
        return found

    return train_an_update


@pytest.mark.parametrize(
    ("minutes", "sizes"),
    [
        (100, PRESETS["small"]),
        (2, PRESETS["small"]),
        (1.9, SMALLER[0]),
        (1, SMALLER[0]),
        (0.9, SMALLER[1]),
        (0.1, SMALLER[1]),
    ],
)
def test_half_an_epoch_at_least(begin, tmp_path, minutes, sizes):
    assert begin(tmp_path / "m", minutes=minutes) == sizes


def test_sizes_stay(begin, tmp_path):
    """If they were chosen, without minutes, or when a run gets another budget."""
    assert begin(tmp_path / "given", fits=False, minutes=0.1) == PRESETS["small"]
    assert begin(tmp_path / "updates", updates=5) == PRESETS["small"]
    assert begin(tmp_path / "m", minutes=0.1) == SMALLER[1]
    for budget in ({"minutes": 100}, {"updates": 5}, {"epochs": 3}):
        assert begin(tmp_path / "m", **budget) == SMALLER[1]


def test_runs_of_other_kinds(tmp_path):
    assert sizes_of_run(tmp_path / "none") is None
    (tmp_path / "m").mkdir()
    for settings in ({}, {"sizes": {"order": 7}}, {"sizes": 5}):
        metadata = {
            "identity": json.dumps({"settings": settings}),
            "state": "{}",
            "learning_rate": "1",
        }
        save_file({}, tmp_path / "m" / CHECKPOINT, metadata)
        assert sizes_of_run(tmp_path / "m") is None


@pytest.mark.parametrize(
    ("options", "hidden"),
    [(("--minutes", 1e-5), 64), (("--minutes", 1e-5, "--preset", "small"), 256)],
)
def test_the_command(run, tmp_path, options, hidden):
    """The speed of this machine is measured; no time is enough, and one update is made."""
    pairs = write_pairs(tmp_path / "pairs.tsv", 400)
    done = run("model", "train", pairs, "m", "--batch-size", 17, *options)
    assert ("would see too few of the pairs" in done.stderr) == (hidden == 64)
    assert f"hidden units           {hidden}" in run("describe", "m").stdout
