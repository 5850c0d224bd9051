"""What the tests share: tiny models, tables, and commands run in process."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from moses_feature.cli.augment import augment_phrase_table
from moses_feature.cli.main import moses_feature
from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.models.phrase_model import PhraseModel, load_model, save_model
from moses_feature.models.sizes import Sizes
from moses_feature.models.vocabulary import Vocabulary
from moses_feature.moses.words import WordOptions
from moses_feature.scoring.of_model import scorer_of
from moses_feature.scoring.scorer import Scorer

SHARED = Path(__file__).parents[2] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")

# Unequal primes, so that a swapped axis cannot pass.
SIZES = Sizes(hidden=13, embedding=5, maxout=7, rank=3)
SOURCE_WORDS = b"a b c d the dog &apos; \xe9t\xe9 [1] one|N".split(b" ")
TARGET_WORDS = b"A B C D le chien un &apos; \xc3\xa9t\xc3\xa9 [1] noir".split(b" ")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """More would only wait for each other on matrices this small."""
    torch.set_num_threads(1)


def random_model(sizes: Sizes = SIZES, seed: int = 1, scale: float = 0.5) -> PhraseModel:
    """Return a model with random weights, biases too, of a size that makes scores differ."""
    source, target = Vocabulary(tuple(SOURCE_WORDS)), Vocabulary(tuple(TARGET_WORDS))
    network = EncoderDecoder(sizes, len(source), len(target))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=scale, generator=generator)
    return PhraseModel(network, source, target, WordOptions(), {"settings": {"seed": seed}})


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


def write_gz(path: Path, content: bytes) -> Path:
    """Write a gzip file."""
    path.write_bytes(gzip.compress(content, mtime=0))
    return path


def read_gz(path: Path) -> bytes:
    """Return what a gzip file holds."""
    return gzip.decompress(path.read_bytes())
