"""The commands `moses-feature model train-cslm` and `train-joint`: feed-forward language models."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.device import DeviceOptions, device_options
from moses_feature.cli.common.paths import READ, WRITE_MODEL
from moses_feature.cli.models.training_options import (
    NgramOptions,
    alignment_option,
    ngram_options,
    plan_option,
    resume_option,
)
from moses_feature.cslm.settings import LM_PRESETS, LmData
from moses_feature.joint.settings import JOINT_PRESETS, JointData

cslm_options = ngram_options(
    LM_PRESETS,
    LmData,
    "Words",
    {"order": "words of an n-gram, the predicted one counted"},
)
joint_options = ngram_options(
    JOINT_PRESETS,
    JointData,
    "Words a side",
    {
        "order": "target words of an n-gram, the predicted one counted",
        "source_window": "source words on each side of the one that the predicted word belongs to",
    },
)


@click.command("train-cslm", cls=Command, no_args_is_help=True)
@click.argument("text", type=READ)
@click.argument("model", type=WRITE_MODEL)
@resume_option
@plan_option
@cslm_options
@device_options
def train_cslm_command(
    text: str,
    model: str,
    resume: bool,
    plan: bool,
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
    data = LmData(text, training.shortlist)
    run = training.settings(on), Path(model), on, resume
    train_and_show(train_language_model, data, *run, "n-grams", plan)


@click.command("train-joint", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("model", type=WRITE_MODEL)
@alignment_option(required=True)
@resume_option
@plan_option
@joint_options
@device_options
def train_joint_command(
    source: str,
    target: str,
    model: str,
    alignment: str,
    resume: bool,
    plan: bool,
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
    data = JointData(source, target, alignment, training.shortlist)
    run = training.settings(on), Path(model), on, resume
    train_and_show(train_joint_model, data, *run, "n-grams", plan)
