"""The command `moses-feature model train`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.options import DeviceOptions, device_options, word_options
from moses_feature.cli.common.paths import READ, WRITE_MODEL
from moses_feature.cli.models.training_options import (
    TrainingOptions,
    plan_option,
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
@plan_option
@training_options
@word_options
@device_options
def train_command(
    tables: tuple[str, ...],
    model: str,
    resume: bool,
    plan: bool,
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
    train_model(tables, Path(model), training, words, device.prepare(), resume, plan)


def train_model(
    tables: tuple[str, ...],
    directory: Path,
    training: TrainingOptions,
    words: WordOptions,
    device: torch.device,
    resume: bool,
    plan: bool = False,
) -> None:
    """Train a model, and show how it goes."""
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.phrases.training import train

    data, settings = training.data(tables, words), training.settings(device)
    fitted = partial(train, fits=not training.size.given())
    train_and_show(fitted, data, settings, directory, device, resume, "pairs", plan)
