"""A network for pairs of phrases or sentences on disk: weights, sizes, vocabularies, origin."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from moses_feature.errors import FormatError
from moses_feature.files import Json
from moses_feature.json_files import member
from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.models.feed_forward import FeedForwardNetwork
from moses_feature.models.files import (
    CONFIG,
    WEIGHTS,
    ModelFiles,
    architecture_of,
    check_weights,
    is_model_directory,
    read_model_files,
    trained_self_normalised,
    write_model_files,
)
from moses_feature.models.reading import FORWARD, Reading
from moses_feature.models.rnnsearch import RnnSearch
from moses_feature.models.sizes import (
    FEED_FORWARD_ARCHITECTURE,
    SEARCH_ARCHITECTURE,
    FeedForwardSizes,
    SearchSizes,
    Sizes,
)
from moses_feature.models.vocabulary import SOURCE_VOCABULARY, TARGET_VOCABULARY, Vocabulary
from moses_feature.moses.words import WordOptions

ARCHITECTURE = "rnn-encoder-decoder"

Network = EncoderDecoder | FeedForwardNetwork | RnnSearch
AnySizes = Sizes | FeedForwardSizes | SearchSizes

SIZES_OF: dict[str, type[AnySizes]] = {
    ARCHITECTURE: Sizes,
    FEED_FORWARD_ARCHITECTURE: FeedForwardSizes,
    SEARCH_ARCHITECTURE: SearchSizes,
}


def architecture_name(sizes: AnySizes) -> str:
    """Return what the config of a model directory calls the network that has such sizes."""
    return next(name for name, kind in SIZES_OF.items() if isinstance(sizes, kind))


def network_of(
    sizes: AnySizes, source_words: int, target_words: int, dropout: float = 0.0
) -> Network:
    """Return a network of some sizes, which say of which kind it is."""
    if isinstance(sizes, SearchSizes):
        return RnnSearch(sizes, source_words, target_words, dropout)
    if isinstance(sizes, FeedForwardSizes):
        return FeedForwardNetwork(sizes, source_words, target_words, dropout)
    return EncoderDecoder(sizes, source_words, target_words, dropout)


@dataclass(frozen=True)
class PhraseModel:
    """A network with everything that is needed to score pairs of phrases or sentences with it.

    Attributes:
        network: the weights.
        source, target: the shortlists.
        words: how tokens became words when it was trained.
        training: settings, results and provenance, for people to read.
        escaped: whether the tokens that it was trained on were escaped as Moses escapes them.
        reading: the direction in which it reads and writes pairs.
        digest: SHA-256 of weights, vocabularies, sizes and word options, in hexadecimal; empty
            before it is saved.
    """

    network: Network
    source: Vocabulary
    target: Vocabulary
    words: WordOptions
    training: Json
    escaped: bool = False
    reading: Reading = FORWARD
    digest: str = ""

    @property
    def loss(self) -> str:
        """What the loss of its training is."""
        return "minus expected BLEU" if "objective" in self.training else "nats per word"

    @property
    def self_normalised(self) -> bool:
        """Whether log Z, which is near 0 by training, is not subtracted in tables."""
        return not isinstance(self.network, RnnSearch) and trained_self_normalised(self.training)

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
        "reading": asdict(model.reading),
        "training": model.training,
    }
    vocabularies = {SOURCE_VOCABULARY: model.source, TARGET_VOCABULARY: model.target}
    weights = {name: tensor.cpu().numpy() for name, tensor in model.network.state_dict().items()}
    architecture = architecture_name(model.network.sizes)
    write_model_files(directory, architecture, ModelFiles(config, vocabularies, weights))


def load_model(directory: Path) -> PhraseModel:
    """Read a model that `save_model` wrote.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    keys, names = ("sizes", "words", "training"), (SOURCE_VOCABULARY, TARGET_VOCABULARY)
    found = architecture_of(directory) if is_model_directory(directory) else ARCHITECTURE
    architecture = found if found in SIZES_OF else ARCHITECTURE
    search = architecture == SEARCH_ARCHITECTURE
    files = read_model_files(directory, architecture, keys, names)
    try:
        sizes, words = (
            SIZES_OF[architecture](**files.config["sizes"]),
            WordOptions(**files.config["words"]),
        )
    except (TypeError, ValueError) as error:
        raise FormatError(directory / CONFIG, "sizes and words", f"{error}") from error
    source, target = (files.vocabularies[name] for name in names)
    with torch.device("meta"):
        network = network_of(sizes, len(source), len(target))
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    check_weights(directory / WEIGHTS, files.weights, shapes)
    weights = {name: torch.tensor(array) for name, array in files.weights.items()}
    network.load_state_dict(weights, assign=True)
    escaped = member(files.config, "escaped", bool, directory / CONFIG, "a model")
    reading = Reading.of_config(files.config, directory / CONFIG)
    reading_key = ("reading",) if search or reading != FORWARD else ()
    digest = files.digest("sizes", "words", "escaped", *reading_key)
    if not search and trained_self_normalised(files.config["training"]):
        digest = hashlib.sha256(f"{digest}, self-normalised".encode()).hexdigest()
    training = files.config["training"]
    return PhraseModel(network, source, target, words, training, escaped, reading, digest)
