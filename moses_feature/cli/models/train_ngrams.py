"""The commands `moses-feature model train-cslm` and `train-joint`: feed-forward language models."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.device import DeviceOptions, device_options
from moses_feature.cli.common.options import estimate_option
from moses_feature.cli.common.paths import READ, WRITE_MODEL
from moses_feature.cli.common.vocabulary import WholeRange, option
from moses_feature.cli.models.training_options import (
    NgramOptions,
    alignment_option,
    ngram_options,
    resume_option,
)
from moses_feature.cslm.settings import LARGEST_ORDER, LARGEST_WINDOW, LM_PRESETS, LmData
from moses_feature.joint.settings import JOINT_PRESETS, JointData

cslm_options = ngram_options(
    LM_PRESETS,
    LmData,
    "Words",
    option(
        "order",
        "Words of an n-gram, the predicted one counted; 7 by default, 10 of characters.",
        within=WholeRange(2, LARGEST_ORDER),
    ),
)

joint_options = ngram_options(
    JOINT_PRESETS,
    JointData,
    "Words a side",
    option(
        "order",
        "Target words of an n-gram, the predicted one counted.",
        default=JOINT_PRESETS["paper"].order,
        within=WholeRange(2, LARGEST_ORDER),
    ),
    option(
        "source-window",
        "Source words on each side of the one that the predicted word belongs to.",
        default=JOINT_PRESETS["paper"].source_window,
        within=WholeRange(0, LARGEST_WINDOW),
    ),
)


@click.command("train-cslm", cls=Command, no_args_is_help=True)
@click.argument("text", type=READ)
@click.argument("model", type=WRITE_MODEL)
@resume_option
@estimate_option
@cslm_options
@device_options
@debug_option
def train_cslm_command(
    text: str,
    model: str,
    resume: bool,
    estimate: bool,
    training: NgramOptions,
    device: DeviceOptions,
) -> None:
    """Train a neural language model (CSLM) on a text.

    TEXT is tokenised, a sentence on each line. The best model, by the loss on held-out sentences,
    is kept in MODEL. Without a budget (--updates, --epochs, --minutes) the training ends after ten
    epochs without gain.

    \b
    Example:
      moses-feature model train-cslm train.fr french.cslm --dropout 0.2 --self-normalisation 0.1
    """
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.cslm.training import train_language_model

    on = device.prepare()
    data = LmData(text, training.shortlist, training.min_count)
    settings = training.settings(on)
    train_and_show(
        train_language_model, data, settings, Path(model), on, resume, "n-grams", estimate
    )


@click.command("train-joint", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("model", type=WRITE_MODEL)
@alignment_option(required=True)
@resume_option
@estimate_option
@joint_options
@device_options
@debug_option
def train_joint_command(
    source: str,
    target: str,
    model: str,
    alignment: str,
    resume: bool,
    estimate: bool,
    training: NgramOptions,
    device: DeviceOptions,
) -> None:
    """Train a joint language model (NNJM) on a bitext.

    Both texts are tokenised, and their words aligned. The best model, by the loss on held-out
    sentences, is kept in MODEL. Without a budget (--updates, --epochs, --minutes) the training ends
    after ten epochs without gain.

    \b
    Example:
      moses-feature model train-joint train.en train.fr en-fr.joint \\
          --alignment model/aligned.grow-diag-final-and --dropout 0.2 --self-normalisation 0.1
    """
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.joint.training import train_joint_model

    on = device.prepare()
    data = JointData(source, target, alignment, training.shortlist, training.min_count)
    run = training.settings(on), Path(model), on, resume
    train_and_show(train_joint_model, data, *run, "n-grams", estimate)
