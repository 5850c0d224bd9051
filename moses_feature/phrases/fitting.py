"""Layer sizes for a time: a smaller network where the usual one would see too few of the pairs."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import torch

from moses_feature.networks.architectures import PairSizes
from moses_feature.phrases.objective import PhraseData, PhraseObjective
from moses_feature.phrases.settings import Sizes, TrainingSettings
from moses_feature.training.checkpoint import settings_of_run
from moses_feature.training.trainer import Trainer

logger = logging.getLogger(__name__)

SMALLER = (
    Sizes(hidden=128, embedding=100, maxout=128, rank=100),
    Sizes(hidden=64, embedding=64, maxout=64, rank=64),
)
FEWEST_EPOCHS = 0.5
"""With fewer a smaller network learns more in the same time (benchmarks/results/training.md)."""
UPDATES = 9
"""Updates by which a network's speed is measured."""


def fitting_sizes(
    data: PhraseData, settings: TrainingSettings, directory: Path, device: torch.device
) -> PairSizes:
    """Return the largest sizes whose network sees half of the pairs in the minutes that it has.

    Sizes are those of the settings, and two smaller ones.

    Args:
        data: the pairs.
        settings: with minutes.
        directory: of the model.
        device: to train on.
    """
    assert settings.minutes is not None  # noqa: S101
    for sizes in (settings.sizes, *SMALLER):
        tried = replace(settings, sizes=sizes)
        objective = PhraseObjective(data, tried, device)
        seconds = Trainer(objective, tried, directory, device, {}).seconds_an_update(UPDATES)
        epochs = 60 * settings.minutes / seconds / objective.updates_per_epoch
        if epochs >= FEWEST_EPOCHS:
            break
    if sizes != settings.sizes:
        logger.info(
            'in %g minutes the usual network would see too few of the pairs: this one has --sizes "'
            '%s", which must be given to make it elsewhere (--preset small keeps the usual sizes)',
            settings.minutes,
            " ".join(f"{name}={size}" for name, size in vars(sizes).items() if name != "unit"),
        )
    return sizes


def sizes_of_run(directory: Path) -> Sizes | None:
    """Return the sizes of the run that began in a model directory; None if none did, or another.

    Raises:
        FormatError: its checkpoint is damaged.
    """
    begun = settings_of_run(directory) or {}
    try:
        return Sizes(**begun["sizes"])
    except (KeyError, TypeError, ValueError):
        return None  # of another kind, which is refused later
