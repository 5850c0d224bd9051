"""The command `moses-feature list tune`."""

from __future__ import annotations

from pathlib import Path

import click

from mert.settings import OPTIMIZERS, ORDERED_BY
from moses_feature.cli.common.command import Command
from moses_feature.cli.common.options import format_option
from moses_feature.cli.common.paths import READ_ONCE, WRITE
from moses_feature.cli.common.vocabulary import option
from moses_feature.cli.tuning.options import TUNING, metric_option
from moses_feature.moses.lines import read_parallel


@click.command("tune", cls=Command, no_args_is_help=True)
@click.argument("lists", type=READ_ONCE)
@click.argument("weights", type=WRITE)
@option(
    "reference",
    "The translation of the text of the lists, tokenised like them. Repeatable.",
    to="references",
    many=True,
    required=True,
)
@format_option
@option(
    "start",
    "Weights to begin with, lines like LM0= 0.1, or a moses.ini; those of the decoder by "
    "default, for lists in Moses' format equal ones.",
)
@option(
    "algorithm",
    "Weight optimiser.",
    default=ORDERED_BY,
    within=OPTIMIZERS,
)
@metric_option
def tune_lists_command(
    lists: str,
    weights: str,
    references: tuple[str, ...],
    form: str,
    start: str | None,
    algorithm: str,
    metric: str,
) -> None:
    """Tune weights on n-best lists, without decoding.

    The lists may be of any decoder. Writes WEIGHTS, for moses-feature list rescore --weights. The
    second number is that of the text that they were tuned on. The third one says what to expect of
    other texts: each half of the sentences is translated with the weights of the other half.

    \b
    Example:
      moses-feature list rescore dev.nbest.gz dev.rescored.gz --model french.cslm
      moses-feature list tune dev.rescored.gz weights.txt --reference dev.fr
      moses-feature list rescore test.nbest.gz test.rescored.gz --model french.cslm \\
          --weights weights.txt --one-best test.out --reference test.fr
    """
    from mert.optimisers import choice
    from mert.optimisers.moses_files import write_weights
    from mert.tuning.tune_lists import features_of, tune_lists
    from moses_feature.metrics import metric_of
    from moses_feature.rescoring.nbest import read_weights

    features = features_of(lists, form, None if start is None else read_weights(start))
    texts, _ = read_parallel(references)
    tuned = tune_lists(
        lists,
        features,
        list(zip(*texts, strict=True)),
        choice.optimizer(algorithm),
        TUNING.seed,
        form,
        metric_of(metric),
    )
    write_weights(Path(weights), tuned.features)
    click.echo(f"{weights}: {tuned.reason}", err=True)
    for warning in tuned.warnings:
        click.echo(f"Warning: {warning}", err=True)
    label = metric_of(metric).label
    click.echo(
        f"{label} {tuned.first:.2f} of the first translations, {tuned.tuned:.2f} tuned, "
        f"{tuned.unseen:.2f} on halves that it was not tuned on, {tuned.best:.2f} if the best were "
        f"always chosen; {tuned.translations:,} translations of {tuned.sentences:,} sentences"
    )
