"""Models on disk: what is saved is loaded, what is damaged is refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.models import random_model
from safetensors.torch import load_file, save_file

from moses_feature.phrases.model import load_model, save_model
from moses_feature.phrases.scorer import scorer_of
from moses_feature.runtime.errors import MosesFeatureError

PAIRS = [([b"a", b"b"], [b"A"]), ([b"dog"], [b"chien", b"noir"])]


def test_a_model_rebuilds_itself(tmp_path):
    model = random_model()
    save_model(tmp_path / "m", model)
    loaded = load_model(tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "config.json",
        "model.safetensors",
        "source.vocab",
        "target.vocab",
    ]
    cpu = torch.device("cpu")
    before, after = (scorer_of(m, cpu).score(PAIRS).log_probs for m in (model, loaded))
    assert np.array_equal(before, after)
    assert loaded.words == model.words
    assert loaded.training == model.training
    assert len(loaded.digest) == 64
    assert loaded.escaped


def edit_config(directory: Path, **changes: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def nan_weights(directory: Path) -> None:
    path = directory / "model.safetensors"
    weights = load_file(path)
    weights["summary.bias"][0] = float("nan")
    save_file(weights, path)


def truncate(name: str):
    def damage(directory: Path) -> None:
        path = directory / name
        path.write_bytes(path.read_bytes()[:-50])

    return damage


DAMAGES = {
    "missing weights": (lambda d: (d / "model.safetensors").unlink(), "model.safetensors is miss"),
    "missing config": (lambda d: (d / "config.json").unlink(), "config.json is missing"),
    "missing words": (lambda d: (d / "target.vocab").unlink(), "target.vocab is missing"),
    "short weights": (truncate("model.safetensors"), "expected the weights of a model"),
    "short config": (truncate("config.json"), "config.json: expected a JSON object"),
    "short words": (truncate("source.vocab"), "source.vocab"),
    "other words": (
        lambda d: (d / "source.vocab").write_bytes(b"</s>\n<unk>\na\n"),
        "source.vocab: expected the words that the network was trained with, found others",
    ),
    "nan": (nan_weights, "finite weights, found nan or inf in summary.bias"),
    "newer version": (lambda d: edit_config(d, format_version=99), "version 1 or older, found ve"),
    "no version": (lambda d: edit_config(d, format_version=None), "expected a format_version"),
    "other architecture": (lambda d: edit_config(d, architecture="lstm"), "found lstm"),
    "other sizes": (lambda d: edit_config(d, sizes={"hidden": 3}), "weights for the sizes in"),
    "a list": (lambda d: (d / "config.json").write_text("[]"), "expected a JSON object"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_directories(model_directory, tmp_path, damage):
    directory = tmp_path / "m"
    shutil.copytree(model_directory, directory)
    break_it, message = DAMAGES[damage]
    break_it(directory)
    with pytest.raises(MosesFeatureError, match=message):
        load_model(directory)


def test_a_model_of_version_0_2(model_directory, tmp_path):
    """Its config does not say what belongs together: the network itself is asked."""
    directory = tmp_path / "m"
    shutil.copytree(model_directory, directory)
    path = directory / "config.json"
    config = json.loads(path.read_text())
    del config["consistency"]
    path.write_text(json.dumps(config))
    assert load_model(directory).digest == load_model(model_directory).digest
    edit_config(directory, sizes=config["sizes"] | {"hidden": 3})
    with pytest.raises(
        MosesFeatureError, match=r"weights for the sizes in .*, found decoder_input.bias"
    ):
        load_model(directory)
    (directory / "memory.safetensors").write_bytes(b"")
    with pytest.raises(MosesFeatureError, match=r"memory\.safetensors: expected no memory"):
        load_model(directory)


def test_no_directory(tmp_path):
    with pytest.raises(MosesFeatureError, match="expected a model directory"):
        load_model(tmp_path / "none")
