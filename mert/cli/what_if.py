"""The command `mert-what-if`."""

from __future__ import annotations

import click

from mert.cli.options import TUNING, algorithm_option, restarts_option
from mert.comparison.what_if import what_if
from mert.optimisers import choice
from mert.tuning.corpus import Corpus
from moses_feature import __version__
from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.option_types import NOT_NEGATIVE, POSITIVE
from moses_feature.cli.paths import READ
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni


@click.command("mert-what-if", cls=Command, no_args_is_help=True)
@click.argument("ini", type=READ)
@click.argument("lists", type=READ)
@click.option(
    "--table", type=READ, required=True, help="The phrase table of the ini, with new columns."
)
@click.option("--table-name", help="Name of the phrase table in the ini, if it has several.")
@click.option("--dev", type=READ, required=True, help="The text of the lists, tokenised.")
@click.option(
    "--dev-reference", type=READ, multiple=True, required=True, help="Its translation. Repeatable."
)
@click.option("--seeds", type=POSITIVE, default=3, show_default=True, help="Runs of the optimiser.")
@click.option("--seed", type=NOT_NEGATIVE, default=TUNING.seed, show_default=True)
@algorithm_option
@restarts_option
@debug_option
@click.version_option(__version__)
def mert_what_if(
    ini: str,
    lists: str,
    table: str,
    table_name: str | None,
    dev: str,
    dev_reference: tuple[str, ...],
    seeds: int,
    seed: int,
    optimizer: str,
    restarts: int,
) -> None:
    """Predict what new columns of a phrase table would bring, from n-best lists, without decoding.

    INI is the system without the columns, tuned, and LISTS are its n-best lists with segmentation.
    Weights are optimised on one half of the sentences, with and without the new columns; BLEU is
    that of the other half, both ways.

    \b
    Example:
      mert-decode tuned.ini --segmentation --n-best lists.gz 100 < dev.en > dev.out
      mert-what-if tuned.ini lists.gz --table augmented.gz --dev dev.en --dev-reference dev.fr
    """
    system = MosesIni.read(ini)
    old = system.table(table_name).score_count
    found = what_if(
        lists,
        FeatureSet.of_ini(system),
        table,
        old,
        Corpus.read(dev, dev_reference),
        choice.optimizer(optimizer, restarts),
        range(seed, seed + seeds),
    )
    low, high = found.interval
    click.echo(
        f"BLEU {found.before:.2f} without, {found.after:.2f} with the new columns: "
        f"{found.after - found.before:+.2f}, from {low:+.2f} to {high:+.2f} with 95% of "
        f"resampled texts (p {found.p:.3f})"
    )
    for number, weights in enumerate(found.weights.T.tolist(), start=old + 1):
        click.echo(f"weights of score {number}: {', '.join(f'{w:.4f}' for w in weights)}")
