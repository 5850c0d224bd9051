"""A trained language model as a model directory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.files import Json
from moses_feature.lm.network import FeedForwardLM
from moses_feature.lm.scorer import VOCABULARY
from moses_feature.lm.sizes import LM_ARCHITECTURE
from moses_feature.models.files import ModelFiles, write_model_files
from moses_feature.models.vocabulary import Vocabulary


def save_language_model(
    directory: Path,
    network: FeedForwardLM,
    vocabulary: Vocabulary,
    frequencies: NDArray[np.float64],
    training: Json,
) -> None:
    """Write a model that `NeuralLM.load` reads.

    Args:
        directory: made where it is missing.
        network: its weights.
        vocabulary: of its words.
        frequencies: (words,) how often each occurs; the projection of a word that is not known
            is the mean of all, weighted by them.
        training: settings, results and provenance.

    Raises:
        MosesFeatureError: the directory cannot be written.
    """
    weights = {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
    projection = weights["projection.weight"]
    mean = frequencies @ projection / max(frequencies.sum(), 1.0)
    weights["projection.weight"] = np.vstack([projection, mean.astype(np.float32)])
    config = {"sizes": asdict(network.sizes), "training": training}
    write_model_files(
        directory, LM_ARCHITECTURE, ModelFiles(config, {VOCABULARY: vocabulary}, weights)
    )
