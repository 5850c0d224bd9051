"""The options that several commands share, and what they become; free of torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from moses_feature.cli.common.types import NOT_NEGATIVE, THREADS, Gathered, taken, together
from moses_feature.cslm.settings import LmSettings, LmSizes
from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import Dtype
from moses_feature.phrases.settings import Sizes, TrainingSettings
from moses_feature.phrases.table_words import TableWords
from moses_feature.rnnsearch.settings import SearchSettings, SearchSizes
from moses_feature.runtime.files import Json

if TYPE_CHECKING:
    import torch


def warn_of_log_norms(training: Json) -> None:
    """Say that Moses will not subtract log Z of a model that was not trained for that."""
    norm = training.get("mean_absolute_log_norm")
    known = f"mean |log Z| {norm:.2f}" if isinstance(norm, float) else "log Z is not known"
    click.echo(
        f"warning: not trained with --self-normalisation ({known}), and Moses will not "
        "normalise its scores",
        err=True,
    )


F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", Sizes, SearchSizes, LmSizes)

DEFAULTS = TrainingSettings()
LM_DEFAULTS = LmSettings()
SEARCH_DEFAULTS = SearchSettings()


@dataclass(frozen=True)
class DeviceOptions:
    """Where to compute, and with how many threads; None for all cores."""

    device: str
    threads: int | None

    def prepare(self) -> torch.device:
        """Choose the device and the number of threads."""
        import torch

        from moses_feature.training.objective import choose_device

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        return choose_device(self.device)


device_options = Gathered(
    "Where to compute",
    "device",
    lambda given: taken(DeviceOptions, given),
    click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, … "),
    click.option("--threads", type=THREADS, help="CPU threads; all cores by default."),
)

estimate_option = click.option(
    "--estimate",
    is_flag=True,
    help="Only work on the head of the table for some seconds, and say how much time, memory and "
    "disk the whole would take. Nothing is written.",
)

_word_options = together(
    click.option(
        "--source-factor",
        type=NOT_NEGATIVE,
        help="Factor of the source tokens that is the word; the whole token by default.",
    ),
    click.option(
        "--target-factor",
        type=NOT_NEGATIVE,
        help="Factor of the target tokens that is the word; the whole token by default.",
    ),
    click.option(
        "--hierarchical",
        is_flag=True,
        help="Accept hierarchical and syntax rules; each non-terminal counts as one symbol.",
    ),
)

word_options = Gathered(
    "Words", "words", lambda given: taken(WordOptions, given, "escaping"), _word_options
)
"""How the tokens of tables become words that a model is trained on."""

table_word_options = Gathered(
    "Words",
    "words",
    lambda given: taken(TableWords, given),
    click.option(
        "--escaped",
        type=click.Choice(["auto", "yes", "no"]),
        default=TableWords.escaped,
        show_default=True,
        help="Whether tokens are escaped as Moses does (&apos;); they are turned into what the "
        "model was trained on. auto: yes.",
    ),
    _word_options,
)
"""How the tokens of a table become words of a model."""

scoring_dtype_option = click.option(
    "--scoring-dtype",
    type=click.Choice(get_args(Dtype)),
    default="float32",
    show_default=True,
    help="Of the large matrix products in scoring. bfloat16 is faster where the processor or GPU "
    "has it; measured: scores change by 0.005 on average, 0.1 at most.",
)
