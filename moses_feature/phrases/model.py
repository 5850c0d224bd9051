"""A network for pairs of phrases or sentences on disk: weights, sizes, vocabularies, provenance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import ARCHITECTURES, architecture_with
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.networks.files import (
    ModelFiles,
    trained_self_normalised,
    write_model_files,
)
from moses_feature.networks.pair_network import PairNetwork, network_of
from moses_feature.networks.pieces import PieceVocabulary, are_shared
from moses_feature.networks.vocabulary import SOURCE_VOCABULARY, TARGET_VOCABULARY, Vocabulary
from moses_feature.phrases.model_files import read_pair_model
from moses_feature.runtime.files import Json


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
    escaped: bool
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


def load_model(directory: Path) -> PhraseModel:
    """Read a model that `save_model` wrote.

    Args:
        directory: the model directory.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    files = read_pair_model(directory, ARCHITECTURES)
    with torch.random.fork_rng(devices=[]):  # its first weights are drawn, and replaced
        network = network_of(files.sizes, len(files.source), len(files.target))
    weights = {name: torch.tensor(array) for name, array in files.weights.items()}
    network.load_state_dict(weights, assign=True)
    if are_shared(files.source, files.target):
        network.share_embeddings()
    return PhraseModel(
        network,
        files.source,
        files.target,
        files.words,
        files.training,
        files.escaped,
        files.direction,
        files.digest,
    )
