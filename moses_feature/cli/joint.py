"""The commands `moses-feature joint …`: the joint language model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.option_types import WholeRange
from moses_feature.cli.options import DeviceOptions, device_options, warn_of_log_norms
from moses_feature.cli.paths import READ, READ_MODEL, WRITE, WRITE_DIRECTORY
from moses_feature.cli.training_options import NgramOptions, ngram_options
from moses_feature.cslm.settings import LARGEST_ORDER, LARGEST_WINDOW
from moses_feature.joint.settings import JOINT_PRESETS, JointData
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM

if TYPE_CHECKING:
    pass


joint_options = ngram_options(
    JOINT_PRESETS,
    JointData,
    "Words a side",
    click.option(
        "--order",
        type=WholeRange(2, LARGEST_ORDER),
        default=JOINT_PRESETS["paper"].order,
        show_default=True,
        help="Target words of an n-gram, the predicted one counted.",
    ),
    click.option(
        "--source-window",
        type=WholeRange(0, LARGEST_WINDOW),
        default=JOINT_PRESETS["paper"].source_window,
        show_default=True,
        help="Source words on each side of the one that the predicted word belongs to.",
    ),
)


@click.group("joint")
def joint_group() -> None:
    """The joint language model (NNJM), which sees target words and source words."""


@joint_group.command("train", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("alignment", type=READ)
@click.argument("model_directory", type=WRITE_DIRECTORY)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in MODEL_DIRECTORY.")
@joint_options
@device_options
@debug_option
def train_command(
    source: str,
    target: str,
    alignment: str,
    model_directory: str,
    resume: bool,
    training: NgramOptions,
    device: DeviceOptions,
) -> None:
    """Train a feed-forward model on two tokenised texts and their word alignments.

    Line n of ALIGNMENT has the links of line n of SOURCE and TARGET, such as 0-0 1-2, as Moses'
    training leaves them in model/aligned.grow-diag-final-and. The best model, by the loss on
    held-out sentences, is kept in MODEL_DIRECTORY. Without a budget (--updates, --epochs,
    --minutes) the training ends after ten epochs without gain.

    \b
    Example:
      moses-feature joint train train.en train.fr model/aligned.grow-diag-final-and en-fr.joint \\
          --dropout 0.2 --self-normalisation 0.1
    """
    from moses_feature.cli.training_run import train_and_show
    from moses_feature.joint.training import train_joint_model

    on = device.prepare()
    settings, directory = training.settings(on), Path(model_directory)
    limits = training.shortlist, training.min_count
    data = JointData(source, target, alignment, *limits)
    train_and_show(train_joint_model, data, settings, directory, on, resume, "n-grams")


@joint_group.command("export-nplm", cls=Command, no_args_is_help=True)
@click.argument("model_directory", type=READ_MODEL)
@click.argument("output", type=WRITE)
@debug_option
def export_command(model_directory: str, output: str) -> None:
    """Write a model for a Moses that was built with NPLM, and print its line of moses.ini.

    OUTPUT is the network in NPLM's text format; beside it stand OUTPUT.source and OUTPUT.target,
    the lists of words. Moses does not subtract log Z, so that the model should be self-normalised.

    \b
    Example:
      moses-feature joint export-nplm en-fr.joint en-fr.nplm
    """
    from moses_feature.joint.nplm import write_joint_nplm
    from moses_feature.joint.scorer import JointModel

    if output == STANDARD_STREAM:
        raise UsageError("the model is written to three files, found -")
    model = JointModel.load(Path(model_directory))
    files = write_joint_nplm(Path(output), model)
    if model.normalised:
        warn_of_log_norms(model.training)
    click.echo(files.line("NNJM0"))
