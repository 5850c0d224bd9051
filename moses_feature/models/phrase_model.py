"""A network for phrase pairs on disk: weights, sizes, vocabularies, and where they came from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from moses_feature.errors import FormatError
from moses_feature.files import Json
from moses_feature.json_files import member
from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.models.files import (
    CONFIG,
    WEIGHTS,
    ModelFiles,
    check_weights,
    read_model_files,
    write_model_files,
)
from moses_feature.models.sizes import Sizes
from moses_feature.models.vocabulary import Vocabulary
from moses_feature.moses.words import WordOptions

ARCHITECTURE = "rnn-encoder-decoder"
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
        escaped: whether the tokens that it was trained on were escaped as Moses escapes them.
        digest: SHA-256 of weights, vocabularies, sizes and word options, in hexadecimal; empty
            before it is saved.
    """

    network: EncoderDecoder
    source: Vocabulary
    target: Vocabulary
    words: WordOptions
    training: Json
    escaped: bool = False
    digest: str = ""

    @property
    def seed(self) -> int | None:
        """The seed that it was trained with, if that is known."""
        settings = self.training.get("settings")
        seed = settings.get("seed") if isinstance(settings, dict) else None
        return seed if isinstance(seed, int) else None


def save_model(directory: Path, model: PhraseModel) -> None:
    """Write a model; each file appears whole, the weights last.

    Raises:
        MosesFeatureError: the directory cannot be written.
    """
    config = {
        "sizes": asdict(model.network.sizes),
        "words": asdict(model.words),
        "escaped": model.escaped,
        "training": model.training,
    }
    vocabularies = {SOURCE_VOCABULARY: model.source, TARGET_VOCABULARY: model.target}
    weights = {name: tensor.cpu().numpy() for name, tensor in model.network.state_dict().items()}
    write_model_files(directory, ARCHITECTURE, ModelFiles(config, vocabularies, weights))


def load_model(directory: Path) -> PhraseModel:
    """Read a model that `save_model` wrote.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    keys, names = ("sizes", "words", "training"), (SOURCE_VOCABULARY, TARGET_VOCABULARY)
    files = read_model_files(directory, ARCHITECTURE, keys, names)
    try:
        sizes, words = Sizes(**files.config["sizes"]), WordOptions(**files.config["words"])
    except (TypeError, ValueError) as error:
        raise FormatError(directory / CONFIG, "sizes and words", f"{error}") from error
    source, target = (files.vocabularies[name] for name in names)
    with torch.device("meta"):
        network = EncoderDecoder(sizes, len(source), len(target))
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    check_weights(directory / WEIGHTS, files.weights, shapes)
    weights = {name: torch.tensor(array) for name, array in files.weights.items()}
    network.load_state_dict(weights, assign=True)
    escaped = member(files.config, "escaped", bool, directory / CONFIG, "a model")
    digest = files.digest("sizes", "words", "escaped")
    return PhraseModel(network, source, target, words, files.config["training"], escaped, digest)
