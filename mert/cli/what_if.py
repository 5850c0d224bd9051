"""The command `moses-feature system what-if`."""

from __future__ import annotations

import click

from mert.cli.options import TUNING, algorithm_option, restarts_option
from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.options import table_name_option
from moses_feature.cli.common.paths import READ, READ_INI
from moses_feature.cli.common.vocabulary import option
from moses_feature.moses.ini import MosesIni


@click.command("what-if", cls=Command, no_args_is_help=True)
@click.argument("ini", type=READ_INI)
@click.argument("lists", type=READ)
@option("table", "The phrase table of the ini, with new columns.", within=READ, required=True)
@table_name_option
@option("source", "The text of the lists, tokenised.", required=True)
@option("reference", "Its translation. Repeatable.", to="references", many=True, required=True)
@option("seeds", "Runs of the optimiser.", default=3)
@option("seed", default=TUNING.seed)
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
    Weights are optimised on one half of the sentences, with and without the new columns, and BLEU
    is measured on the other half, both ways.

    \b
    Example:
      mert-decode tuned.ini --with-segmentation --lists lists.gz < dev.en > dev.out
      moses-feature system what-if tuned.ini lists.gz --table augmented.gz --source dev.en \\
          --reference dev.fr
    """
    from mert.comparison.what_if import what_if
    from mert.optimisers import choice
    from mert.tuning.corpus import Corpus
    from moses_feature.moses.features import FeatureSet

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
