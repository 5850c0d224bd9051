"""The options that the commands of `mert` share, and the settings made of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mert.settings import DECODERS, OPTIMIZERS, DecoderSettings, MosesSettings, TuningSettings
from moses_feature.cli.common.groups import Given, OptionGroup, options, take, taking
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.vocabulary import WholeRange, option
from moses_feature.decoder.limits import DEFAULT_POPS, SearchLimits
from moses_feature.metrics import METRICS
from moses_feature.moses.system_directory import MOST_TRANSLATIONS
from moses_feature.runtime.errors import UsageError


class DecodingProgress:
    """Shows the progress of one decoding run after the other.

    Args:
        progress: the progress bar.
        sentences: the number of sentences to decode, by a word in the description of the task.
    """

    def __init__(self, progress: Progress, sentences: dict[str, int]) -> None:
        self._progress = progress
        self._sentences = sentences
        self._what = ""
        self._done = 0

    def __call__(self, what: str, done: int) -> None:
        """Show the current task, and advance by `done` sentences."""
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


MOST_POPS = 100_000
"""Hundreds of times the usual number; it still fits in memory."""

TUNING = TuningSettings()


@dataclass(frozen=True)
class SearchOptions:
    """The limits of the embedded decoder, and its number of processes, if one is given."""

    limits: SearchLimits
    jobs: int | None

    @classmethod
    def from_options(cls, given: Given) -> SearchOptions:
        """Pick the settings from the options of a command."""
        return cls(take(SearchLimits, given), given.pop("jobs"))


def _decoder_settings(given: Given) -> DecoderSettings:
    """Pick the decoder's settings from the options of a command."""
    try:
        moses_options = tuple(shlex.split(given.pop("moses_options")))
    except ValueError as error:
        raise UsageError(f"--moses-options: {error}") from None
    filtered = given.pop("filter_tables")
    alone = given["jobs"] and not given["ray"]  # on a cluster, jobs are workers of one thread
    threads = given["jobs"] if alone else MosesSettings.threads
    moses = take(MosesSettings, given, threads=threads, options=moses_options, filter=filtered)
    return take(DecoderSettings, given, limits=take(SearchLimits, given), moses=moses)


_search_options = options(
    option(
        "pop-limit",
        "Pop limit of the embedded decoder's cube pruning; the ini's "
        f"[cube-pruning-pop-limit], or {DEFAULT_POPS}, by default.",
        to="pops",
        within=WholeRange(1, MOST_POPS),
    ),
    option(
        "jobs",
        "Processes of the embedded decoder, by default as many as there are cores, fewer for "
        "short texts; or threads of moses, by default one.",
        default=DecoderSettings.jobs,
    ),
)

search_options = OptionGroup("Decoder", "search", SearchOptions.from_options, _search_options)

decoder_options = OptionGroup(
    "Decoder",
    "decoder_choice",
    _decoder_settings,
    option(
        "decoder",
        "The embedded decoder, or real Moses.",
        default=DecoderSettings.decoder,
        within=DECODERS,
    ),
    _search_options,
    option("moses", "The moses binary; by default in $MOSES_HOME or on the PATH.", to="binary"),
    option(
        "moses-options",
        "More arguments for moses, such as '-search-algorithm 1 -s 1000'.",
        default="",
    ),
    option(
        "ray",
        "Decode on a Ray cluster: local (this machine alone), auto (the cluster it belongs "
        "to), or another address that Ray takes. --jobs is then the number of workers, by default "
        "as many as there are cores for. All machines must see the models at the same paths.",
    ),
    option("filter-tables", "Cut the tables down to the input before moses reads them."),
)

algorithm_option = option(
    "algorithm",
    "Weight optimiser.",
    default=TUNING.algorithm,
    within=OPTIMIZERS,
)

metric_option = option(
    "metric",
    "What is optimised, and shown: BLEU; word or translation error rate; chrF; or the share "
    "of sentences that are right. Words are letters in a system of letters.",
    default=TUNING.metric,
    within=tuple(METRICS),
)

tuning_options = OptionGroup(
    "Tuning",
    "tuning",
    taking(TuningSettings),
    option(
        "algorithm",
        "Weight optimiser of the search; rescored lists are always tuned with mira.",
        default=TUNING.algorithm,
        within=OPTIMIZERS,
    ),
    metric_option,
    option(
        "nbest-size",
        "Distinct translations of each sentence.",
        to="list_size",
        default=TUNING.list_size,
        within=WholeRange(2, MOST_TRANSLATIONS),
    ),
    option("max-iterations", "Decoding runs at most.", default=TUNING.max_iterations),
)


@contextmanager
def decoding_progress(sentences: dict[str, int]) -> Iterator[Callable[[str, int], None]]:
    """Show the progress of decoding; see `DecodingProgress`."""
    with Progress(has_end=True) as bar:
        yield DecodingProgress(bar, sentences)


plan_option = option(
    "plan", "Only translate a few sentences, and print how long the whole may take."
)
force_option = option("force", "Tune although BLEU is next to nothing at the start.")
