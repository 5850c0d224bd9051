"""The command `mert-tune-lists`."""

from __future__ import annotations

from pathlib import Path

import click

from mert.cli.options import TUNING, algorithm_option, metric_option, restarts_option
from mert.optimisers import choice
from mert.optimisers.moses_files import write_weights
from mert.tuning.tune_lists import features_of, tune_lists
from moses_feature import __version__
from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.option_types import NOT_NEGATIVE, format_option
from moses_feature.cli.paths import READ, WRITE
from moses_feature.metrics.metric import METRICS
from moses_feature.moses.lines import read_parallel
from moses_feature.rescoring.nbest import read_weights
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM


@click.command("mert-tune-lists", cls=Command, no_args_is_help=True)
@click.argument("lists", type=READ)
@click.argument("weights", type=WRITE)
@click.option(
    "--dev-reference",
    type=READ,
    multiple=True,
    required=True,
    help="The translation of the text of the lists, tokenised like them. Repeatable.",
)
@format_option
@click.option(
    "--start",
    type=READ,
    help="Weights to begin with, lines like LM0= 0.1, or a moses.ini; those of the decoder by "
    "default, for lists in Moses' format equal ones.",
)
@algorithm_option
@metric_option
@restarts_option
@click.option("--seed", type=NOT_NEGATIVE, default=TUNING.seed, show_default=True)
@debug_option
@click.version_option(__version__)
def mert_tune_lists(
    lists: str,
    weights: str,
    dev_reference: tuple[str, ...],
    form: str,
    start: str | None,
    optimizer: str,
    metric: str,
    restarts: int,
    seed: int,
) -> None:
    """Tune weights on n-best lists of any decoder, without decoding; writes WEIGHTS.

    The weights are for moses-feature rescore --weights. The second number is that of the text that
    they were tuned on. The third one says what to expect of other texts: each half of the sentences
    is translated with the weights of the other half.

    \b
    Example:
      moses-feature rescore dev.nbest.gz dev.rescored.gz --cslm french.cslm
      mert-tune-lists dev.rescored.gz weights.txt --dev-reference dev.fr
      moses-feature rescore test.nbest.gz test.rescored.gz --cslm french.cslm \\
          --weights weights.txt --best test.out --reference test.fr
    """
    if weights == STANDARD_STREAM:
        raise UsageError("weights are written to a file, found -")
    features = features_of(lists, form, None if start is None else read_weights(start))
    texts, _ = read_parallel(dev_reference)
    tuned = tune_lists(
        lists,
        features,
        list(zip(*texts, strict=True)),
        choice.optimizer(optimizer, restarts),
        seed,
        form,
        METRICS[metric],
    )
    write_weights(Path(weights), tuned.features)
    click.echo(f"{weights}: {tuned.reason}", err=True)
    for warning in tuned.warnings:
        click.echo(f"Warning: {warning}", err=True)
    label = METRICS[metric].label
    click.echo(
        f"{label} {tuned.first:.2f} of the first translations, {tuned.tuned:.2f} tuned, "
        f"{tuned.unseen:.2f} on halves that it was not tuned on, {tuned.best:.2f} if the best were "
        f"always chosen; {tuned.translations:,} translations of {tuned.sentences:,} sentences"
    )
