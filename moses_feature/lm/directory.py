"""A trained language model as a model directory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.arrays import Floats32
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
    weights["projection.weight"] = with_mean(weights["projection.weight"], frequencies)
    config = {"sizes": asdict(network.sizes), "training": training}
    write_model_files(
        directory, LM_ARCHITECTURE, ModelFiles(config, {VOCABULARY: vocabulary}, weights)
    )


def with_mean(projection: Floats32, frequencies: NDArray[np.float64]) -> Floats32:
    """Return projections and, behind them, that of a word that is not known.

    Args:
        projection: (words, P)
        frequencies: (words,) by which the mean is weighted.
    """
    mean = frequencies @ projection / max(frequencies.sum(), 1.0)
    return np.vstack([projection, mean.astype(np.float32)])
