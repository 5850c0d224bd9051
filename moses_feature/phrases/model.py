"""A network for pairs of phrases or sentences on disk: weights, sizes, vocabularies, provenance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import ARCHITECTURES, ENCODER_DECODER, architecture_with
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.networks.files import (
    CONFIG,
    WEIGHTS,
    ModelFiles,
    architecture_of,
    check_weights,
    has_memory,
    is_model_directory,
    read_model_files,
    trained_self_normalised,
    write_model_files,
)
from moses_feature.networks.pair_network import PairNetwork, network_of
from moses_feature.networks.pieces import PieceVocabulary, are_shared
from moses_feature.networks.vocabulary import SOURCE_VOCABULARY, TARGET_VOCABULARY, Vocabulary
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import member


@dataclass(frozen=True)
class PhraseModel:
    """A network with everything that is needed to score pairs of phrases or sentences with it.

    Attributes:
        network: the weights.
        source, target: the shortlists.
        words: how tokens became words in training.
        training: settings, results and provenance, for people to read.
        escaped: whether the training tokens were escaped as Moses escapes them.
        direction: the direction in which the network reads and writes pairs.
        digest: SHA-256 of weights, vocabularies, sizes and word options, in hexadecimal; empty
            before the model is saved.
    """

    network: PairNetwork
    source: Vocabulary
    target: Vocabulary
    words: WordOptions
    training: Json
    escaped: bool = False
    direction: Direction = FORWARD
    digest: str = ""

    @property
    def loss(self) -> tuple[int, str]:
        """What is shown of its loss: the factor on it, and the unit."""
        if "objective" in self.training:
            return -1, "expected BLEU"
        return 1, "nats per subword" if isinstance(
            self.target, PieceVocabulary
        ) else "nats per word"

    def shown_loss(self, loss: float) -> str:
        """Return a loss of its training with its unit."""
        sign, unit = self.loss
        return f"{sign * loss:.4f}{'' if sign < 0 else f' {unit}'}"

    @property
    def measure(self) -> str:
        """What the training measured on what was held out."""
        return "held-out expected BLEU" if "objective" in self.training else "held-out loss"

    @property
    def self_normalised(self) -> bool:
        """Whether log Z is near 0 by training, so that tables do not subtract it."""
        return trained_self_normalised(self.training)

    @property
    def seed(self) -> int | None:
        """The seed of training, if it is known."""
        settings = self.training.get("settings")
        seed = settings.get("seed") if isinstance(settings, dict) else None
        return seed if isinstance(seed, int) else None


def save_model(directory: Path, model: PhraseModel) -> None:
    """Write a model; each file appears complete, the weights last.

    Raises:
        MosesFeatureError: the directory cannot be written.
    """
    config = {
        "sizes": asdict(model.network.sizes),
        "words": asdict(model.words),
        "escaped": model.escaped,
        "reading": asdict(model.direction),
        "training": model.training,
    }
    vocabularies = {SOURCE_VOCABULARY: model.source, TARGET_VOCABULARY: model.target}
    weights = {name: tensor.cpu().numpy() for name, tensor in model.network.state_dict().items()}
    architecture = architecture_with(model.network.sizes)
    write_model_files(directory, architecture, ModelFiles(config, vocabularies, weights))


def load_model(directory: Path, with_memory: bool = False) -> PhraseModel:
    """Read a model that `save_model` wrote.

    Args:
        directory: the model directory.
        with_memory: accept a model that has a memory, and ignore the memory.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    keys, names = ("sizes", "words", "training"), (SOURCE_VOCABULARY, TARGET_VOCABULARY)
    architecture = ENCODER_DECODER
    if is_model_directory(directory):
        architecture = architecture_of(directory)
    if architecture not in ARCHITECTURES:
        expected = f"architecture {' or '.join(ARCHITECTURES)}"
        raise FormatError(directory / CONFIG, expected, architecture)
    files = read_model_files(directory, architecture, keys, names)
    if not with_memory and has_memory(directory):
        raise MosesFeatureError(
            f"{directory}: expected a network without a memory, found one with it: take "
            "the one that it was made from"
        )
    try:
        sizes = ARCHITECTURES[architecture].load("sizes")(**files.config["sizes"])
        words = WordOptions(**files.config["words"])
    except (TypeError, ValueError) as error:
        raise FormatError(directory / CONFIG, "sizes and words", f"{error}") from error
    source, target = (files.vocabularies[name] for name in names)
    with torch.random.fork_rng(devices=[]):  # its first weights are drawn, and replaced
        network = network_of(sizes, len(source), len(target))
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    check_weights(directory / WEIGHTS, files.weights, shapes)
    weights = {name: torch.tensor(array) for name, array in files.weights.items()}
    network.load_state_dict(weights, assign=True)
    if are_shared(source, target):
        network.share_embeddings()
    escaped = member(files.config, "escaped", bool, directory / CONFIG, "a model")
    direction = Direction.of_config(files.config, directory / CONFIG)
    digest = files.pair_digest()
    training = files.config["training"]
    return PhraseModel(network, source, target, words, training, escaped, direction, digest)
