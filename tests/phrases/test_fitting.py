"""Sizes that follow from the time: which they are, and that a run that has begun keeps them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from helpers.training import write_pairs

from moses_feature.phrases.fitting import SMALLER
from moses_feature.phrases.settings import PRESETS, Sizes, TrainingData, TrainingSettings
from moses_feature.phrases.training import train
from moses_feature.training.checkpoint import settings_of_run
from moses_feature.training.trainer import RunControl, Trainer

MINUTES_OF_AN_EPOCH = {256: 4, 128: 2, 64: 1}
"""By the number of hidden units."""


def seconds_an_update(trainer: Trainer, updates: int) -> float:
    assert updates > 1
    minutes = MINUTES_OF_AN_EPOCH[trainer.network.sizes.hidden]
    return 60 * minutes / trainer.state.updates_per_epoch


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Train for an update, on a machine of a known speed; return the settings of the run."""
    monkeypatch.setattr(Trainer, "seconds_an_update", seconds_an_update)
    data = TrainingData([str(write_pairs(tmp_path / "pairs.tsv", 400))])

    def train_an_update(model: Path, minutes: float, fits: bool = True) -> dict:
        settings = TrainingSettings(minutes=minutes, batch_size=17)
        control = RunControl(resume=model.exists(), stop=lambda: True)
        train(data, settings, model, torch.device("cpu"), control, fits=fits)
        found = settings_of_run(model)
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
    assert Sizes(**begin(tmp_path / "m", minutes)["sizes"]) == sizes


def test_sizes_stay(begin, tmp_path):
    """If they were chosen, or when more time is given to a run."""
    assert begin(tmp_path / "given", 0.1, fits=False)["sizes"] == asdict(PRESETS["small"])
    small = begin(tmp_path / "m", 0.1)
    assert begin(tmp_path / "m", 100)["sizes"] == small["sizes"] == asdict(SMALLER[1])
    assert settings_of_run(tmp_path / "none") is None


def test_speed_is_measured(tmp_path):
    data = TrainingData([str(write_pairs(tmp_path / "pairs.tsv", 400))])
    settings = TrainingSettings(minutes=1000, batch_size=17)
    control = RunControl(stop=lambda: True)
    train(data, settings, tmp_path / "m", torch.device("cpu"), control, fits=True)
    found = settings_of_run(tmp_path / "m")
    assert found is not None
    assert found["sizes"] == asdict(PRESETS["small"])
