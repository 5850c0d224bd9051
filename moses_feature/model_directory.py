"""A model on disk: weights, sizes, vocabularies, and where they came from.

`model.safetensors` (weights), `config.json`, `source.vocab` and `target.vocab` (one word per
line, id = line number counted from 0). Nothing in it is a pickle.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from moses_feature.encoder_decoder import EncoderDecoder, Sizes
from moses_feature.errors import FormatError, MosesFeatureError
from moses_feature.files import whole_file, write_json
from moses_feature.vocabulary import Vocabulary
from moses_feature.words import WordOptions, any_escaped

FORMAT_VERSION = 1
ARCHITECTURE = "rnn-encoder-decoder"
WEIGHTS = "model.safetensors"
CONFIG = "config.json"
SOURCE_VOCABULARY = "source.vocab"
TARGET_VOCABULARY = "target.vocab"


@dataclass(frozen=True)
class PhraseModel:
    """A network with everything that is needed to score phrase pairs with it.

    Attributes:
        network: the weights.
        source, target: the shortlists.
        words: how tokens became words when it was trained.
        training: settings, results and provenance, for people to read.
        digest: SHA-256 of weights, vocabularies, sizes and word options, in hexadecimal; empty
            before it is saved.
    """

    network: EncoderDecoder
    source: Vocabulary
    target: Vocabulary
    words: WordOptions
    training: dict[str, Any]
    digest: str = ""

    @property
    def seed(self) -> int | None:
        """The seed that it was trained with, if that is known."""
        settings = self.training.get("settings")
        seed = settings.get("seed") if isinstance(settings, dict) else None
        return seed if isinstance(seed, int) else None

    @property
    def escaped(self) -> bool:
        """Whether the words of the shortlists are escaped as Moses escapes them."""
        return any_escaped(self.source.shortlist) or any_escaped(self.target.shortlist)


def save_model(directory: Path, model: PhraseModel) -> None:
    """Write a model; each file appears whole, the weights last.

    Raises:
        MosesFeatureError: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MosesFeatureError(f"{directory}: {error.strerror}") from error
    config = {
        "format_version": FORMAT_VERSION,
        "architecture": ARCHITECTURE,
        "sizes": asdict(model.network.sizes),
        "words": asdict(model.words),
        "training": model.training,
    }
    model.source.save(directory / SOURCE_VOCABULARY)
    model.target.save(directory / TARGET_VOCABULARY)
    write_json(directory / CONFIG, config)
    weights = {name: tensor.cpu() for name, tensor in model.network.state_dict().items()}
    with whole_file(directory / WEIGHTS) as temporary:
        save_file(weights, temporary)


def load_model(directory: Path) -> PhraseModel:
    """Read a model that `save_model` wrote.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    if not directory.is_dir():
        raise MosesFeatureError(f"{directory}: expected a model directory, found none")
    for name in (CONFIG, SOURCE_VOCABULARY, TARGET_VOCABULARY, WEIGHTS):
        if not (directory / name).is_file():
            raise MosesFeatureError(f"{directory}: not a model directory, {name} is missing")
    sizes, words, training = _read_config(directory / CONFIG)
    source = Vocabulary.load(directory / SOURCE_VOCABULARY)
    target = Vocabulary.load(directory / TARGET_VOCABULARY)
    with torch.device("meta"):
        network = EncoderDecoder(sizes, len(source), len(target))
    path = directory / WEIGHTS
    try:
        weights = load_file(path)
        network.load_state_dict(weights, assign=True)
    except (OSError, SafetensorError) as error:
        raise FormatError(path, "the weights of a model", f"a damaged file ({error})") from error
    except RuntimeError as error:
        what = " ".join(str(error).split())[:200]
        raise FormatError(
            path, f"weights for the sizes in {CONFIG} and the vocabularies", what
        ) from error
    for name, weight in weights.items():
        if weight.dtype != torch.float32:
            raise FormatError(path, "float32 weights", f"{weight.dtype} in {name}")
        if not torch.isfinite(weight).all():
            raise FormatError(path, "finite weights", f"nan or inf in {name}")
    hashed = hashlib.sha256(json.dumps([asdict(sizes), asdict(words)]).encode())
    for name in (SOURCE_VOCABULARY, TARGET_VOCABULARY, WEIGHTS):
        hashed.update((directory / name).read_bytes())
    return PhraseModel(network, source, target, words, training, hashed.hexdigest())


def _read_config(path: Path) -> tuple[Sizes, WordOptions, dict[str, Any]]:
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(path, "a JSON object", f"a damaged file ({error})") from error
    version = config.get("format_version") if isinstance(config, dict) else None
    if type(version) is not int or version < 1:
        raise FormatError(path, "a format_version", f"{version}")
    if version > FORMAT_VERSION:
        raise FormatError(
            path, f"format version {FORMAT_VERSION} or older", f"version {version}: update me"
        )
    if config.get("architecture") != ARCHITECTURE:
        raise FormatError(path, f"architecture {ARCHITECTURE}", f"{config.get('architecture')}")
    try:
        sizes, words = Sizes(**config["sizes"]), WordOptions(**config["words"])
        training = config["training"]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(path, "sizes, words and training", f"{error}") from error
    if not isinstance(training, dict):
        raise FormatError(path, "training: an object", f"{training}")
    return sizes, words, training
