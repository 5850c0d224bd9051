"""From a text to a trained language model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from moses_feature import __version__
from moses_feature.errors import MosesFeatureError, UsageError
from moses_feature.files import STANDARD_STREAM, Json, locked_directory
from moses_feature.lm.ngrams import Ngrams, Text
from moses_feature.lm.objective import NgramObjective
from moses_feature.lm.settings import LmData, LmSettings
from moses_feature.models.vocabulary import Vocabulary
from moses_feature.moses.lines import LineReader
from moses_feature.training.ranks import ALONE, Ranks
from moses_feature.training.trainer import Trainer, TrainingState, holds_model, run_or_resume

logger = logging.getLogger(__name__)


def train_language_model(
    data: LmData,
    settings: LmSettings,
    directory: Path,
    device: torch.device,
    *,
    resume: bool = False,
    command: str = "",
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[TrainingState], None] = lambda _: None,
    ranks: Ranks = ALONE,
) -> str:
    """Train a language model and keep the best one in `directory`, with the run's checkpoint.

    Arguments, result and errors are those of `training.train`.
    """
    ranks.from_first(lambda: _check(data, directory, resume))
    with ExitStack() as stack:
        lock = locked_directory(directory, "training")
        ranks.from_first(lambda: stack.enter_context(lock))
        training_set = ranks.from_first(lambda: _training_set(data, settings, command))
        objective = NgramObjective(
            training_set.ngrams, training_set.held_out, training_set.vocabulary, settings, device
        )
        trainer = Trainer(objective, settings, directory, device, training_set.provenance, ranks)
        return run_or_resume(trainer, directory, stop, report, ranks)


def _check(data: LmData, directory: Path, resume: bool) -> None:
    """Check that there is something to train, and that it would not overwrite anything."""
    if data.text == STANDARD_STREAM:
        raise UsageError("training reads from files: expected a file name, found -")
    if holds_model(directory) and not resume:
        raise UsageError(f"{directory} holds a model already: --resume goes on with it")


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
    if not text.counts:
        raise MosesFeatureError(f"{data.text}: expected words to train on, found none")
    frequent = {word: count for word, count in text.counts.items() if count >= data.min_count}
    vocabulary = Vocabulary.most_frequent(frequent or text.counts, data.shortlist)
    coverage = vocabulary.coverage(text.counts)
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
