"""The options that the commands share, and what they become."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

import click
import torch
from click.core import ParameterSource

from moses_feature.errors import UsageError
from moses_feature.lm.settings import LmData, LmSettings
from moses_feature.lm.sizes import LARGEST_ORDER, LM_PRESETS, LmSizes
from moses_feature.models.sizes import LARGEST_SIZE, PRESETS, Dtype, Sizes
from moses_feature.moses.words import WordOptions
from moses_feature.training.device import choose_device
from moses_feature.training.settings import (
    LEARNING_RATES,
    RunSettings,
    TrainingData,
    TrainingSettings,
)

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", Sizes, LmSizes)

DEFAULTS = TrainingSettings()
LM_DEFAULTS = LmSettings()
POSITIVE = click.IntRange(min=1)
SEED = click.IntRange(0, (1 << 63) - 1)


class FiniteRange(click.FloatRange):
    """A float in a range; click's own lets nan through."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Take the option's text."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


ABOVE_ZERO = FiniteRange(min=0, min_open=True)


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


device_options = _all(
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, … "),
    click.option(
        "--threads", type=click.IntRange(1, 1024), help="CPU threads; all cores by default."
    ),
)

word_options = _all(
    click.option(
        "--source-factor",
        type=click.IntRange(min=0),
        help="Factor of the source tokens that is the word; the whole token by default.",
    ),
    click.option(
        "--target-factor",
        type=click.IntRange(min=0),
        help="Factor of the target tokens that is the word; the whole token by default.",
    ),
    click.option(
        "--hierarchical",
        is_flag=True,
        help="Accept hierarchical and syntax rules; each non-terminal counts as one symbol.",
    ),
)


def run_options(defaults: RunSettings, examples: str, epoch: str) -> Callable[[F], F]:
    """Return the options of a training run.

    Args:
        defaults: of the settings.
        examples: what an update has many of.
        epoch: updates between evaluations, by default.
    """
    return _all(
        click.option(
            "--optimizer", type=click.Choice(list(LEARNING_RATES)), default=defaults.optimizer,
            show_default=True, help="adadelta is the paper's.",
        ),
        click.option(
            "--learning-rate", type=ABOVE_ZERO, help="0.001 (adam) or 1 (adadelta) by default."
        ),
        click.option(
            "--annealing", type=FiniteRange(0, 1, min_open=True), default=defaults.annealing,
            show_default=True,
            help="Factor on the learning rate after an evaluation that is not the best so far.",
        ),
        click.option(
            "--batch-size", type=POSITIVE, default=defaults.batch_size, show_default=True,
            help=f"{examples.capitalize()} an update.",
        ),
        click.option("--updates", type=POSITIVE, help="Stop after so many updates."),
        click.option(
            "--epochs", type=ABOVE_ZERO, help=f"Stop after so many passes over the {examples}."
        ),
        click.option("--minutes", type=ABOVE_ZERO, help="Stop after so many minutes."),
        click.option(
            "--evaluate-every", type=POSITIVE,
            help=f"Updates between evaluations; {epoch} by default.",
        ),
        click.option(
            "--patience", type=POSITIVE, default=defaults.patience, show_default=True,
            help="Stop after so many evaluations in a row without a better held-out loss.",
        ),
        click.option(
            "--dropout", type=FiniteRange(0, 1, max_open=True), default=defaults.dropout,
            show_default=True,
            help="Share of the components of embeddings and of the last layer's units that "
            "training leaves out.",
        ),
        click.option(
            "--dtype", type=click.Choice(["float32", "bfloat16"]), default=defaults.dtype,
            show_default=True, help="Of the matrix products in training.",
        ),
        click.option("--seed", type=SEED, default=defaults.seed, show_default=True),
    )  # fmt: skip


def held_out_option(defaults: TrainingSettings | LmSettings, what: str) -> Callable[[F], F]:
    """Return the option for the held-out share of something."""
    return click.option(
        "--held-out", type=FiniteRange(0, 1, min_open=True, max_open=True),
        default=defaults.held_out, show_default=True,
        help=f"Share of the {what} that measure the loss and are not trained on.",
    )  # fmt: skip


training_options = _all(
    click.option(
        "--preset",
        type=click.Choice(list(PRESETS)),
        help="Layer sizes; small on a CPU, paper on a GPU by default.",
    ),
    *(
        click.option(
            f"--{field.name}",
            type=click.IntRange(1, LARGEST_SIZE),
            help=f"Size in place of the preset's: {what}.",
        )
        for field, what in zip(
            fields(Sizes),
            ("hidden units", "word embedding", "maxout units", "rank of the output matrix"),
            strict=True,
        )
    ),
    click.option(
        "--shortlist",
        type=POSITIVE,
        default=TrainingData.shortlist,
        show_default=True,
        help="Words a side that the network knows; the rest is UNK.",
    ),
    click.option("--source-text", help="Text whose word frequencies make the source shortlist."),
    click.option("--target-text", help="The same for the target side."),
    held_out_option(DEFAULTS, "source phrases"),
    click.option(
        "--folds",
        type=POSITIVE,
        default=TrainingData.folds,
        show_default=True,
        help="Cross-fitting: train so many networks, each without a part of the source phrases, "
        "and score this part with it. Each network has the whole budget.",
    ),
    run_options(DEFAULTS, "phrase pairs", "an epoch, 5,000 at most,"),
)

lm_options = _all(
    click.option(
        "--preset",
        type=click.Choice(list(LM_PRESETS)),
        help="Layer sizes; small on a CPU, paper on a GPU by default.",
    ),
    click.option(
        "--order",
        type=click.IntRange(2, LARGEST_ORDER),
        default=LM_PRESETS["paper"].order,
        show_default=True,
        help="Words of an n-gram, the predicted one counted.",
    ),
    *(
        click.option(
            f"--{name}",
            type=click.IntRange(1, LARGEST_SIZE),
            help=f"Size in place of the preset's: {what}.",
        )
        for name, what in (
            ("projection", "projection of a context word"),
            ("first", "units of the first rectified layer"),
            ("second", "units of the second rectified layer"),
        )
    ),
    click.option(
        "--shortlist",
        type=POSITIVE,
        default=LmData.shortlist,
        show_default=True,
        help="Words that the network knows; the rest is UNK.",
    ),
    click.option(
        "--min-count",
        type=POSITIVE,
        default=LmData.min_count,
        show_default=True,
        help="How often a word of the shortlist occurs at least. With 1 and a short text there "
        "may be no UNK to learn from.",
    ),
    held_out_option(LM_DEFAULTS, "sentences, 100 at least,"),
    click.option(
        "--self-normalisation",
        type=FiniteRange(0),
        default=LM_DEFAULTS.self_normalisation,
        show_default=True,
        help="Factor of (log Z)^2 in the loss; above 0, scores are used without log Z, which is "
        "much faster in a decoder. Moses with NPLM never subtracts it. 0.1 is usual.",
    ),
    run_options(LM_DEFAULTS, "n-grams", "an epoch"),
)

scoring_dtype_option = click.option(
    "--scoring-dtype",
    type=click.Choice(get_args(Dtype)),
    default="float32",
    show_default=True,
    help="Of the large matrix products in scoring. bfloat16 is faster where the processor or GPU "
    "has it; measured: scores change by 0.005 on average, 0.1 at most.",
)

escaped_option = click.option(
    "--escaped",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help="Whether tokens are escaped as Moses does (&apos;); they are turned into what the model "
    "was trained on. auto: yes.",
)

TRAINING_OPTION_NAMES = (
    *(field.name for field in fields(TrainingSettings) if field.name not in ("sizes",)),
    *(field.name for field in fields(Sizes)),
    "preset",
    "shortlist",
    "source_text",
    "target_text",
    "folds",
)


def training_settings(device: torch.device, options: dict[str, Any]) -> TrainingSettings:
    """Take the training options out of the options of a command."""
    sizes = _sizes(PRESETS, Sizes, device, options)
    return TrainingSettings(sizes=sizes, **_of_class(TrainingSettings, options))


def lm_settings(device: torch.device, options: dict[str, Any]) -> LmSettings:
    """Take the options of a language model's training out of the options of a command."""
    sizes = _sizes(LM_PRESETS, LmSizes, device, options)
    return LmSettings(sizes=sizes, **_of_class(LmSettings, options))


def _sizes(presets: dict[str, S], kind: type, device: torch.device, options: dict[str, Any]) -> S:
    preset = options["preset"] or ("paper" if device.type == "cuda" else "small")
    given = {field.name: options[field.name] for field in fields(kind)}
    return replace(presets[preset], **{name: n for name, n in given.items() if n is not None})


def _of_class(settings: type, options: dict[str, Any]) -> dict[str, Any]:
    return {f.name: options[f.name] for f in fields(settings) if f.name in options}


def training_data(tables: tuple[str, ...], options: dict[str, Any]) -> TrainingData:
    """Take what to train on out of the options of a command."""
    words = WordOptions(
        source_factor=options["source_factor"],
        target_factor=options["target_factor"],
        hierarchical=options["hierarchical"],
    )
    names = ("source_text", "target_text", "shortlist", "folds")
    return TrainingData(tables, words=words, **{name: options[name] for name in names})


def refuse_training_options() -> None:
    """See that no training option was given to a command that is not going to train."""
    ctx = click.get_current_context()
    for name in TRAINING_OPTION_NAMES:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--model only scores: --{name.replace('_', '-')} is for training")


def prepare_device(device: str, threads: int | None) -> torch.device:
    """Choose the device and the number of threads."""
    if threads is not None:
        torch.set_num_threads(threads)
    return choose_device(device)
