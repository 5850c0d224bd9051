"""The options that the commands of `mert` share, and what they become."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from mert.decoders.choice import DECODERS, DecoderSettings
from mert.decoders.moses import MosesSettings
from mert.optimisers.choice import OPTIMIZERS
from mert.tuning.state import TuningSettings
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.types import (
    ABOVE_ZERO,
    NOT_NEGATIVE,
    POSITIVE,
    THREADS,
    ZERO_OR_MORE,
    Gathered,
    Given,
    WholeRange,
    taken,
    together,
)
from moses_feature.decoder.decoder import DEFAULT_POPS, DEFAULT_STACK, SearchLimits
from moses_feature.metrics.metric import METRICS
from moses_feature.runtime.errors import UsageError


class DecodingProgress:
    """Shows one decoding run after the other.

    Args:
        progress: where it is shown.
        sentences: how many there are to decode, by a word in the description of what is done.
    """

    def __init__(self, progress: Progress, sentences: dict[str, int]) -> None:
        self._progress = progress
        self._sentences = sentences
        self._what = ""
        self._done = 0

    def __call__(self, what: str, done: int) -> None:
        """Show what is being done, and that so many more sentences are done."""
        if what != self._what:
            self._what, self._done = what, 0
            self._progress.restart()
        self._done += done
        total = next((n for word, n in self._sentences.items() if word in what), None)
        if total is None:
            self._progress.show(what, None)
        else:
            share = self._done / total
            self._progress.show(f"{what}: {self._done:,} of {total:,} sentences", share)


F = TypeVar("F", bound=Callable[..., Any])

MOST_POPS = 100_000
"""Hundreds of times what is usual, and what still fits in memory."""
MOST_TRANSLATIONS = 10_000

TUNING = TuningSettings()


@dataclass(frozen=True)
class SearchOptions:
    """How the embedded decoder searches, and in how many processes; None for one."""

    limits: SearchLimits
    jobs: int | None

    @classmethod
    def from_options(cls, given: Given) -> SearchOptions:
        """Pick them from the options of a command."""
        return cls(taken(SearchLimits, given), given.pop("jobs"))


def _decoder_settings(given: Given) -> DecoderSettings:
    """Pick the decoder's settings from the options of a command."""
    try:
        moses_options = tuple(shlex.split(given.pop("moses_options")))
    except ValueError as error:
        raise UsageError(f"--moses-options: {error}") from None
    moses = MosesSettings(
        binary=given.pop("moses"),
        threads=given.pop("threads"),
        options=moses_options,
        seconds=given.pop("time_limit"),
        filter=given.pop("filter_tables"),
    )
    search = SearchOptions.from_options(given)
    return DecoderSettings(
        decoder=given.pop("decoder"),
        limits=search.limits,
        jobs=search.jobs,
        ray=given.pop("ray"),
        moses=moses,
    )


_search_options = together(
    click.option(
        "--pops",
        type=WholeRange(1, MOST_POPS),
        help="Pop limit of the embedded decoder's cube pruning; the ini's "
        f"[cube-pruning-pop-limit], or {DEFAULT_POPS}, by default.",
    ),
    click.option(
        "--stack",
        type=WholeRange(1, MOST_POPS),
        help=f"Its stack size; the ini's [stack], or {DEFAULT_STACK}, by default.",
    ),
    click.option(
        "--jobs",
        type=THREADS,
        default=DecoderSettings.jobs,
        help="Processes of the embedded decoder; 1 by default.",
    ),
)

search_options = Gathered("Decoder", "search", SearchOptions.from_options, _search_options)

decoder_options = Gathered(
    "Decoder",
    "decoder_choice",
    _decoder_settings,
    click.option(
        "--decoder",
        type=click.Choice(DECODERS),
        default=DecoderSettings.decoder,
        show_default=True,
        help="The embedded decoder, or real Moses.",
    ),
    _search_options,
    click.option(
        "--moses",
        metavar="FILE",
        help="The moses binary; by default in $MOSES_HOME or on the PATH.",
    ),
    click.option(
        "--moses-options",
        default="",
        metavar="TEXT",
        help="More arguments for moses, such as '-search-algorithm 1 -s 1000'.",
    ),
    click.option(
        "--threads",
        type=POSITIVE,
        default=MosesSettings.threads,
        show_default=True,
        help="Threads of moses.",
    ),
    click.option(
        "--time-limit",
        type=ABOVE_ZERO,
        metavar="SECONDS",
        help="End moses if one decoding run takes longer.",
    ),
    click.option(
        "--ray",
        metavar="ADDRESS",
        help="Decode on a Ray cluster: local (this machine alone), auto (the cluster it belongs "
        "to), or another address that Ray takes. --jobs is then the number of workers, by default "
        "as many as there are cores for. All machines must see the models at the same paths.",
    ),
    click.option(
        "--filter-tables",
        is_flag=True,
        help="Cut the tables down to the input before moses reads them.",
    ),
)

algorithm_option = click.option(
    "--algorithm",
    type=click.Choice(OPTIMIZERS),
    default=TUNING.algorithm,
    show_default=True,
    help="That finds the weights on the n-best lists.",
)

metric_option = click.option(
    "--metric",
    type=click.Choice(list(METRICS)),
    default=TUNING.metric,
    show_default=True,
    help="What is optimised, and shown: BLEU; word or translation error rate; chrF; or the share "
    "of sentences that are right. Words are letters in a system of letters.",
)

restarts_option = click.option(
    "--restarts",
    type=NOT_NEGATIVE,
    default=TUNING.restarts,
    show_default=True,
    help="Random start points of mert.",
)

tuning_options = Gathered(
    "Tuning",
    "tuning",
    lambda given: taken(TuningSettings, given, "random_directions", "seed"),
    click.option(
        "--algorithm",
        type=click.Choice(OPTIMIZERS),
        default=TUNING.algorithm,
        show_default=True,
        help="That finds the weights.",
    ),
    metric_option,
    click.option(
        "--list-size",
        type=WholeRange(2, MOST_TRANSLATIONS),
        default=TUNING.list_size,
        show_default=True,
        help="Distinct translations of each sentence.",
    ),
    click.option(
        "--max-iterations",
        type=POSITIVE,
        default=TUNING.max_iterations,
        show_default=True,
        help="Decoding runs at most.",
    ),
    click.option(
        "--settled",
        type=ZERO_OR_MORE,
        default=TUNING.settled,
        show_default=True,
        help="Stop when no weight (their absolute values sum to 1) changes by more.",
    ),
    restarts_option,
)

force_option = click.option(
    "--force", is_flag=True, help="Tune although BLEU is next to nothing at the start."
)
