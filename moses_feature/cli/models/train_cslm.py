"""The command `moses-feature model train-cslm`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.groups import Given, OptionGroup
from moses_feature.cli.common.options import DeviceOptions, device_options
from moses_feature.cli.common.paths import READ, WRITE_MODEL
from moses_feature.cli.models.training_options import (
    SizeOptions,
    given_settings,
    plan_option,
    resume_option,
    run_options,
    self_normalisation_option,
    shortlist_option,
    size_options,
)
from moses_feature.cslm.settings import LM_PRESETS, LmData, LmSettings


def _settings(given: Given) -> tuple[SizeOptions, LmSettings, int]:
    """Return the sizes, all other settings, and the size of the shortlist."""
    size = SizeOptions.from_options(given)
    return size, LmSettings(**given_settings(LmSettings, given)), given.pop("shortlist")


training_options = OptionGroup(
    "Training",
    "training",
    _settings,
    size_options(
        LM_PRESETS,
        {
            "order": "words of an n-gram, the predicted one counted",
            "projection": "projection of a word",
            "first": "units of the first rectified layer",
            "second": "units of the second rectified layer",
        },
    ),
    shortlist_option(LmData, "Words"),
    self_normalisation_option("in a decoder. Moses with NPLM never subtracts it"),
    run_options(LmSettings(), "n-grams", "an epoch"),
)


@click.command("train-cslm", cls=Command, no_args_is_help=True)
@click.argument("text", type=READ)
@click.argument("model", type=WRITE_MODEL)
@resume_option
@plan_option
@training_options
@device_options
def train_cslm_command(
    text: str,
    model: str,
    resume: bool,
    plan: bool,
    training: tuple[SizeOptions, LmSettings, int],
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
    size, settings, shortlist = training
    run = replace(settings, sizes=size.on(on, LM_PRESETS)), Path(model), on, resume
    train_and_show(train_language_model, LmData(text, shortlist), *run, "n-grams", plan)
