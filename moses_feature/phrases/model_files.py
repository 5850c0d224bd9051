"""The files of a network for pairs of phrases or sentences, read together.

Free of torch, but for models of version 0.2: the network itself is asked for their shapes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import ARCHITECTURES, PairSizes
from moses_feature.networks.direction import Direction
from moses_feature.networks.files import (
    CONFIG,
    WEIGHTS,
    architecture_of,
    check_weights,
    read_model_files,
)
from moses_feature.networks.vocabulary import SOURCE_VOCABULARY, TARGET_VOCABULARY, Vocabulary
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import member


@dataclass(frozen=True)
class PairModelFiles:
    """A network for pairs of phrases or sentences, as a model directory has it.

    Attributes:
        architecture: its name in the registry.
        sizes: layer sizes.
        weights: float32 arrays by name.
        source, target: the vocabularies.
        words, escaped: how tokens become words; see `PhraseModel`.
        direction: in which pairs are read and written.
        training: settings, results and provenance.
        digest: SHA-256 of everything that determines the scores.
    """

    architecture: str
    sizes: PairSizes
    weights: dict[str, NDArray[np.float32]]
    source: Vocabulary
    target: Vocabulary
    words: WordOptions
    escaped: bool
    direction: Direction
    training: Json
    digest: str


def read_pair_model(directory: Path, architectures: Collection[str]) -> PairModelFiles:
    """Read a network for pairs.

    Args:
        directory: the model directory.
        architectures: those that are expected.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    names, path = (SOURCE_VOCABULARY, TARGET_VOCABULARY), directory / CONFIG
    name = architecture_of(directory)
    if name not in architectures:
        raise FormatError(path, f"architecture {' or '.join(architectures)}", name)
    architecture = ARCHITECTURES[name]
    files = read_model_files(directory, name, ("sizes", "words", "training"), names)
    config = files.config
    try:
        sizes = architecture.load("sizes")(**config["sizes"])
        words = WordOptions(**config["words"])
    except (TypeError, ValueError) as error:
        raise FormatError(path, "sizes and words", f"{error}") from error
    source, target = (files.vocabularies[of] for of in names)
    if not files.checked:
        shapes = architecture.load("network").shapes(sizes, len(source), len(target))
        check_weights(directory / WEIGHTS, files.weights, shapes)
    return PairModelFiles(
        name,
        sizes,
        files.weights,
        source,
        target,
        words,
        member(config, "escaped", bool, path, "a model"),
        Direction.of_config(config, path),
        config["training"],
        files.pair_digest(),
    )
