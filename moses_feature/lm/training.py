"""From a text to a trained language model."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from moses_feature import __version__
from moses_feature.errors import MosesFeatureError
from moses_feature.files import Json
from moses_feature.lm.directory import save_language_model
from moses_feature.lm.network import FeedForwardLM
from moses_feature.lm.ngrams import Ngrams, Text
from moses_feature.lm.objective import NgramObjective
from moses_feature.lm.settings import LmData, LmSettings
from moses_feature.models.vocabulary import Vocabulary
from moses_feature.moses.lines import LineReader
from moses_feature.training.control import NO_CONTROL, RunControl
from moses_feature.training.single import train_single

logger = logging.getLogger(__name__)


def train_language_model(
    data: LmData,
    settings: LmSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Train a language model and keep the best one in `directory`, with the run's checkpoint.

    Result and errors are those of `train_single`.
    """
    return train_single(
        (data.text,),
        lambda: _training_set(data, settings, control.command),
        lambda learnt: _objective(learnt, settings, device),
        settings,
        directory,
        device,
        control,
    )


def _objective(learnt: _TrainingSet, settings: LmSettings, device: torch.device) -> NgramObjective:
    network = FeedForwardLM(settings.sizes, len(learnt.vocabulary), settings.dropout)

    def save(directory: Path, frequencies: NDArray[np.float64], training: Json) -> None:
        save_language_model(directory, network, learnt.vocabulary, frequencies, training)

    of_text = learnt.ngrams, learnt.held_out
    return NgramObjective(*of_text, network, settings, device, [learnt.vocabulary], save)


@dataclass(frozen=True)
class _TrainingSet:
    """What the network is trained on."""

    ngrams: Ngrams
    held_out: NDArray[np.bool_]
    vocabulary: Vocabulary
    provenance: Json


def _training_set(data: LmData, settings: LmSettings, command: str) -> _TrainingSet:
    with LineReader(data.text) as reader:
        text = Text(reader)
        inputs = [reader.provenance("text")]
    counts = text.counts()
    if not counts:
        raise MosesFeatureError(f"{data.text}: expected words to train on, found none")
    vocabulary = Vocabulary.shortlist_of(counts, data.shortlist, data.min_count)
    coverage = vocabulary.coverage(counts)
    logger.info(
        "%d sentences; the shortlist has %d words, %.2f%% of the running words",
        len(text),
        len(vocabulary.shortlist),
        100 * coverage,
    )
    held_out = text.held_out(settings.held_out, settings.fewest_held_out, settings.seed)
    ngrams = text.ngrams(vocabulary, settings.sizes.order)
    provenance = {
        "command": command,
        "version": __version__,
        "inputs": inputs,
        "shortlist_coverage": coverage,
        "sentences": len(text),
    }
    return _TrainingSet(ngrams, held_out, vocabulary, provenance)
