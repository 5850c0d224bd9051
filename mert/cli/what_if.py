"""The command `moses-feature system what-if`."""

from __future__ import annotations

import click

from mert.cli.options import TUNING, algorithm_option, restarts_option
from mert.comparison.what_if import what_if
from mert.optimisers import choice
from mert.tuning.corpus import Corpus
from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.paths import READ
from moses_feature.cli.common.types import NOT_NEGATIVE, POSITIVE, table_name_option
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni


@click.command("what-if", cls=Command, no_args_is_help=True)
@click.argument("ini", type=READ)
@click.argument("lists", type=READ)
@click.option(
    "--table", type=READ, required=True, help="The phrase table of the ini, with new columns."
)
@table_name_option
@click.option("--source", type=READ, required=True, help="The text of the lists, tokenised.")
@click.option(
    "--reference",
    "references",
    type=READ,
    multiple=True,
    required=True,
    help="Its translation. Repeatable.",
)
@click.option("--seeds", type=POSITIVE, default=3, show_default=True, help="Runs of the optimiser.")
@click.option("--seed", type=NOT_NEGATIVE, default=TUNING.seed, show_default=True)
@algorithm_option
@restarts_option
@debug_option
def what_if_command(
    ini: str,
    lists: str,
    table: str,
    table_name: str | None,
    source: str,
    references: tuple[str, ...],
    seeds: int,
    seed: int,
    algorithm: str,
    restarts: int,
) -> None:
    """Predict what new columns would bring, without decoding.

    INI is the system without the columns, tuned, and LISTS are its n-best lists with segmentation.
    Weights are optimised on one half of the sentences, with and without the new columns; BLEU is
    that of the other half, both ways.

    \b
    Example:
      mert-decode tuned.ini --with-segmentation --lists lists.gz < dev.en > dev.out
      moses-feature system what-if tuned.ini lists.gz --table augmented.gz --source dev.en \\
          --reference dev.fr
    """
    system = MosesIni.read(ini)
    old = system.table(table_name).score_count
    found = what_if(
        lists,
        FeatureSet.of_ini(system),
        table,
        old,
        Corpus.read(source, references),
        choice.optimizer(algorithm, restarts),
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
