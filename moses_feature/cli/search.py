"""The commands `moses-feature search …`: RNNsearch."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.command import Command, command_line, debug_option
from moses_feature.cli.memory import keep_freed_memory
from moses_feature.cli.options import (
    DeviceOptions,
    SearchOptions,
    device_options,
    search_options,
)
from moses_feature.cli.paths import READ, WRITE_DIRECTORY


@click.group("search")
def search_group() -> None:
    """RNNsearch, a network for whole sentences that aligns while it translates."""


@search_group.command("train", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("model_directory", type=WRITE_DIRECTORY)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in MODEL_DIRECTORY.")
@search_options
@device_options
@debug_option
def train_command(
    source: str,
    target: str,
    model_directory: str,
    resume: bool,
    training: SearchOptions,
    device: DeviceOptions,
) -> None:
    """Train a network on two tokenised texts; line n of TARGET translates line n of SOURCE.

    The best model, by the loss on held-out sentence pairs, is kept in MODEL_DIRECTORY. The first
    of the budgets that is spent (--updates, --epochs, --minutes, --patience) ends the training.

    \b
    Example:
      moses-feature search train train.en train.fr en-fr.search --dropout 0.2 --minutes 60
    """
    from moses_feature.cli.training_run import training_run
    from moses_feature.search.training import train_search

    keep_freed_memory()
    directory = Path(model_directory)
    torch_device = device.prepare()
    settings = training.settings(torch_device)
    with training_run(directory, settings, torch_device, "sentence pairs") as run:
        train_search(
            training.data(source, target),
            settings,
            directory,
            torch_device,
            resume=resume,
            command=command_line(),
            stop=run.stop,
            report=run.report,
            ranks=run.ranks,
        )
