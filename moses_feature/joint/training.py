"""From an aligned text to a trained joint language model (NNJM; Devlin et al. 2014).

It has the layers of the neural language model, and its context includes a window of source words.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moses_feature.cslm.settings import LmSettings
from moses_feature.cslm.training import FeedForwardLM, NgramData, NgramObjective, with_mean
from moses_feature.joint.settings import JOINT_ARCHITECTURE, JointData, JointSizes
from moses_feature.joint.texts import AlignedText, JointNgrams
from moses_feature.networks.files import ModelFiles, write_model_files
from moses_feature.networks.vocabulary import (
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    Shortlists,
)
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.training.runs import train_network
from moses_feature.training.trainer import NO_CONTROL, RunControl

logger = logging.getLogger(__name__)


class JointLM(FeedForwardLM):
    """p(word | the source words around its affiliation, the order - 1 words before it).

    A context is the ids of the source words from left to right, then those of the target words.
    """

    def __init__(self, sizes: JointSizes, source: int, target: int, dropout: float = 0.0) -> None:
        super().__init__(sizes, target, dropout)
        self.source_words = sizes.source_words
        self.source_projection = nn.Embedding(source, sizes.projection)

    def projected(self, contexts: Tensor) -> Tensor:
        """Return the projections (N, positions, projection) of the words of contexts."""
        source, target = contexts[:, : self.source_words], contexts[:, self.source_words :]
        return torch.cat([self.source_projection(source), self.projection(target)], 1)


def train_joint_model(
    data: JointData,
    settings: LmSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Train a joint language model and keep the best one in `directory`, with the checkpoint.

    The sizes of the settings are `JointSizes`. Result and errors are those of `train_network`.
    """
    return train_network(
        (data.source, data.target, data.alignment),
        lambda: _read(data, settings),
        lambda ngrams: _objective(ngrams, settings, device),
        settings,
        directory,
        device,
        control,
    )


def _objective(
    data: NgramData[JointNgrams], settings: LmSettings, device: torch.device
) -> NgramObjective:
    sizes = cast(JointSizes, settings.sizes)
    target, source = data.vocabularies
    network = JointLM(sizes, len(source), len(target), settings.dropout)

    def save(directory: Path, frequencies: NDArray[np.float64], training: Json) -> None:
        of_source = data.ngrams.source_frequencies(len(source))
        vocabularies = {SOURCE_VOCABULARY: source, TARGET_VOCABULARY: target}
        weights = {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
        for name, of in ("projection", frequencies), ("source_projection", of_source):
            weights[f"{name}.weight"] = with_mean(weights[f"{name}.weight"], of)
        config = {"sizes": asdict(sizes), "training": training}
        write_model_files(directory, JOINT_ARCHITECTURE, ModelFiles(config, vocabularies, weights))

    return NgramObjective(data, network, settings, device, save)


def _read(data: JointData, settings: LmSettings) -> tuple[NgramData[JointNgrams], Json]:
    text = AlignedText(data)
    if not len(text):
        raise MosesFeatureError(
            f"{data.source}, {data.alignment}: expected sentence pairs with word alignments, "
            "found none"
        )
    counts = text.source.counts(), text.target.counts()
    shortlists = Shortlists.of_counts(*counts, data.shortlist, data.min_count)
    logger.info(
        "%d sentence pairs%s; %s",
        len(text),
        f" ({text.left_out} without words or links were left out)" if text.left_out else "",
        shortlists,
    )
    source, target = shortlists.source, shortlists.target
    held_out = text.target.held_out(settings.held_out, settings.fewest_held_out, settings.seed)
    ngrams = text.ngrams(source, target, cast(JointSizes, settings.sizes))
    provenance = {
        "inputs": text.inputs,
        "shortlist_coverage": shortlists.coverage,
        "pairs": len(text),
        "left_out": text.left_out,
    }
    return NgramData(ngrams, held_out, (target, source)), provenance
