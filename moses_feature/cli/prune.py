"""The command `moses-feature prune`."""

from __future__ import annotations

import click

from moses_feature.cli.command import Command, command_line, debug_option
from moses_feature.cli.option_types import ANY_NUMBER, POSITIVE
from moses_feature.cli.paths import READ_AUGMENTED, WRITE_TABLE
from moses_feature.tables.prune import PruneSettings, prune


@click.command("prune", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_AUGMENTED)
@click.argument("output", type=WRITE_TABLE)
@click.option(
    "--best",
    type=POSITIVE,
    help="Targets of a source phrase that are kept, those that the network finds likeliest.",
)
@click.option(
    "--least",
    type=ANY_NUMBER,
    help="Keep targets whose log p(target | source) by the network is so high at least, for each "
    "word, the end being one: -3, say. A single word keeps its best target in any case.",
)
@debug_option
def prune_command(table: str, output: str, best: int | None, least: float | None) -> None:
    """Keep the lines of an augmented table that the network believes in.

    What is kept is kept to the byte. Lines of a source phrase stand together, as Moses writes them.

    \b
    Example:
      moses-feature prune augmented.gz small.gz --least -3
    """
    facts = prune(table, output, PruneSettings(best, least), command_line())
    kept, before = facts["lines_written"], facts["lines_before_pruning"]
    click.echo(f"{output}: {kept:,} of {before:,} lines", err=True)
