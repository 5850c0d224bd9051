"""Fixtures of all tests; see `helpers/` for what is no fixture."""

from __future__ import annotations

import os

# One thread for each process, here and in those that tests start: more would only wait for each
# other on matrices this small. It must be said before numpy and torch are loaded.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", GOMP_SPINCOUNT="1000")
# Ray gives its workers a low priority: beside other work they would hardly run at all.
os.environ.update(RAY_worker_niceness="0")

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from helpers.models import random_model
from helpers.moses import embedded, stand_in, toy

from moses_feature.cli.main import moses_feature
from moses_feature.cli.tables.augment import augment_phrase_table
from moses_feature.phrases.model import PhraseModel, load_model, save_model
from moses_feature.phrases.scorer import Scorer, scorer_of

__all__ = ["embedded", "stand_in", "toy"]  # fixtures


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Keep a test that sets another number from changing it for the next ones."""
    torch.set_num_threads(1)


@pytest.fixture
def model() -> PhraseModel:
    return random_model()


@pytest.fixture
def scorer(model: PhraseModel) -> Scorer:
    return scorer_of(model, torch.device("cpu"))


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a saved model with random weights."""
    directory = tmp_path_factory.mktemp("models") / "random.model"
    save_model(directory, random_model())
    load_model(directory)
    return directory


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a fresh directory, and see that its exit code is as expected."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: object, exit_code: int = 0, stdin: bytes | None = None) -> Result:
        command, *rest = map(str, arguments)
        augment = command == "augment-phrase-table"
        result = CliRunner().invoke(
            augment_phrase_table if augment else moses_feature,
            rest if augment else [command, *rest],
            input=None if stdin is None else io.BufferedReader(io.BytesIO(stdin)),
        )
        unexpected = result.exception and not isinstance(result.exception, SystemExit)
        assert not unexpected, result.exception
        assert result.exit_code == exit_code, result.output
        return result

    return invoke
