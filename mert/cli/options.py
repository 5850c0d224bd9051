"""The options that the commands of `mert` share, and what they become."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mert.decoders.choice import DECODERS, DecoderSettings
from mert.decoders.embedded.decoder import DEFAULT_POPS, DEFAULT_STACK, SearchLimits
from mert.decoders.moses import MosesSettings
from mert.optimisers.choice import OPTIMIZERS
from mert.tune import TuningSettings
from moses_feature.errors import UsageError
from moses_feature.rescoring.nbest import named

F = TypeVar("F", bound=Callable[..., Any])

TUNING = TuningSettings()
POSITIVE = click.IntRange(min=1)


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


search_options = _all(
    click.option(
        "--pops", type=POSITIVE,
        help="Pop limit of the embedded decoder's cube pruning; the ini's "
        f"[cube-pruning-pop-limit], or {DEFAULT_POPS}, by default.",
    ),
    click.option(
        "--stack", type=POSITIVE,
        help=f"Its stack size; the ini's [stack], or {DEFAULT_STACK}, by default.",
    ),
    click.option(
        "--jobs", type=click.IntRange(1, 1024), default=DecoderSettings.jobs,
        help="Processes of the embedded decoder; 1 by default.",
    ),
)  # fmt: skip

decoder_options = _all(
    click.option(
        "--decoder", type=click.Choice(DECODERS), default=DecoderSettings.decoder,
        show_default=True, help="The embedded decoder, or real Moses.",
    ),
    search_options,
    click.option("--moses", help="The moses binary; by default in $MOSES_HOME or on the PATH."),
    click.option(
        "--moses-options", default="", metavar="TEXT",
        help="More arguments for moses, such as '-search-algorithm 1 -s 1000'.",
    ),
    click.option(
        "--threads", type=POSITIVE, default=MosesSettings.threads, show_default=True,
        help="Threads of moses.",
    ),
    click.option(
        "--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
        help="End moses if one decoding run takes longer.",
    ),
    click.option(
        "--ray", metavar="ADDRESS",
        help="Decode on a Ray cluster: local (this machine alone), auto (the cluster it belongs "
        "to), or another address that Ray takes. --jobs is then the number of workers, by default "
        "as many as there are cores for. All machines must see the models at the same paths.",
    ),
    click.option(
        "--filter", "filter_tables", is_flag=True,
        help="Cut the tables down to the input before moses reads them.",
    ),
)  # fmt: skip

tuning_options = _all(
    click.option(
        "--optimizer", type=click.Choice(OPTIMIZERS), default=TUNING.optimizer, show_default=True
    ),
    click.option(
        "--n-best", type=click.IntRange(min=2), default=TUNING.n_best, show_default=True,
        help="Distinct translations of each sentence.",
    ),
    click.option(
        "--max-iterations", type=POSITIVE, default=TUNING.max_iterations, show_default=True
    ),
    click.option(
        "--settled", type=click.FloatRange(min=0), default=TUNING.settled, show_default=True,
        help="Stop when no weight (their absolute values sum to 1) changes by more.",
    ),
    click.option(
        "--restarts", type=click.IntRange(min=0), default=TUNING.restarts, show_default=True,
        help="Random start points of mert.",
    ),
)  # fmt: skip


def decoder_settings(options: dict[str, Any]) -> DecoderSettings:
    """Take the decoder's options out of the options of a command."""
    try:
        moses_options = tuple(shlex.split(options.pop("moses_options")))
    except ValueError as error:
        raise UsageError(f"--moses-options: {error}") from None
    moses = MosesSettings(
        options.pop("moses"), options.pop("threads"), moses_options,
        options.pop("time_limit"), options.pop("filter_tables"),
    )  # fmt: skip
    limits = SearchLimits(options.pop("pops"), options.pop("stack"))
    rescoring = tuple(named(text, "CSLM0") for text in options.pop("rescore", ()))
    return DecoderSettings(
        options.pop("decoder"), limits, options.pop("jobs"), options.pop("ray"), moses, rescoring
    )
