"""The command `moses-feature table favourites`."""

from __future__ import annotations

from typing import Literal

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_AUGMENTED
from moses_feature.cli.common.vocabulary import option
from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.errors import MosesFeatureError, shown
from moses_feature.tables.favourites import (
    FEWEST_TARGETS,
    as_text,
    favourites,
    favourites_of_long_phrases,
)
from moses_feature.tables.score_lines import network_column


@click.command("favourites", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_AUGMENTED)
@option("phrase", "A source phrase. Repeatable.", to="phrases", many=True)
@option(
    "frequency",
    "Without --phrase: which long source phrases.",
    default="frequent",
    within=["frequent", "rare"],
)
@option("count", "Without --phrase: how many.", default=10)
@option("shortest", "Without --phrase: the fewest words.", default=4)
@option("best", "Targets of each.", default=3)
def favourites_command(
    table: str,
    phrases: tuple[str, ...],
    frequency: Literal["frequent", "rare"],
    count: int,
    shortest: int,
    best: int,
) -> None:
    """Show the targets that table and network prefer.

    As in the paper's Table 2. Ranks by p(target | source): the table's third score, and the
    network's.

    \b
    Example:
      moses-feature table favourites augmented.gz --frequency rare --shortest 5
    """
    column = network_column(table)
    if phrases:
        wanted = [b" ".join(tokens(phrase.encode(errors="surrogateescape"))) for phrase in phrases]
        rows = favourites(table, column, wanted, best)
        for phrase in set(wanted) - {row.source for row in rows}:
            raise MosesFeatureError(f"{table}: no source phrase {shown(phrase)}")
    else:
        rows = favourites_of_long_phrases(table, column, frequency, count, shortest, best)
        if not rows:
            raise MosesFeatureError(
                f"{table}: no source phrase of {shortest} words or more has {FEWEST_TARGETS} "
                "targets"
            )
    click.echo(as_text(rows))
