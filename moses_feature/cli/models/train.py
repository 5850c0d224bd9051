"""The command `moses-feature model train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.device import DeviceOptions, device_options
from moses_feature.cli.common.options import estimate_option, word_options
from moses_feature.cli.common.paths import READ, WRITE_MODEL
from moses_feature.cli.models.training_options import (
    TrainingOptions,
    resume_option,
    training_options,
)
from moses_feature.moses.words import WordOptions

if TYPE_CHECKING:
    import torch


@click.command("train", cls=Command, no_args_is_help=True)
@click.argument("tables", nargs=-1, required=True, type=READ)
@click.argument("model", type=WRITE_MODEL)
@resume_option
@estimate_option
@training_options
@word_options
@device_options
@debug_option
def train_command(
    tables: tuple[str, ...],
    model: str,
    resume: bool,
    estimate: bool,
    training: TrainingOptions,
    words: WordOptions,
    device: DeviceOptions,
) -> None:
    """Train a network on the phrase pairs of tables.

    TABLES are phrase tables, or tab-separated files of phrase pairs. The best model, by the loss on
    held-out source phrases, is kept in MODEL. The first of the budgets that is spent (--updates,
    --epochs, --minutes, --patience) ends the training.

    \b
    Example:
      moses-feature model train phrase-table.gz my.model --preset small --minutes 60
    """
    if estimate:
        from moses_feature.cli.tables.estimate import estimate_training

        on = device.prepare()
        estimate_training(training.data(tables, words), training.settings(on), on)
        return
    train_model(tables, Path(model), training, words, device.prepare(), resume)


def train_model(
    tables: tuple[str, ...],
    directory: Path,
    training: TrainingOptions,
    words: WordOptions,
    device: torch.device,
    resume: bool,
) -> None:
    """Train a model, and show how it goes."""
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.phrases.training import train

    data, settings = training.data(tables, words), training.settings(device)
    train_and_show(train, data, settings, directory, device, resume, "pairs")
