"""The command `moses-feature table filter`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_TABLE, WRITE
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.vocabulary import option
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM


@click.command("filter", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_TABLE)
@click.argument("output", type=WRITE)
@option("source", "The text that the table was extracted from, tokenised.", required=True)
@option("target", "Its translation.", required=True)
@option(
    "significance",
    "a+e drops pairs that are seen once, each of their phrases once, too; a-e keeps them. Or a "
    "number: the least -log p, natural.",
    default="a+e",
)
def filter_command(table: str, output: str, source: str, target: str, significance: str) -> None:
    """Drop phrase pairs that may stand together by chance.

    By Fisher's exact test (Johnson et al. 2007), as Moses' filter-pt does with suffix arrays of
    SALM; but a word that would lose all its translations keeps the likeliest one. The lines that
    stay are as they were.

    \b
    Example:
      moses-feature table filter phrase-table.gz filtered.gz --source train.en --target train.fr
    """
    from moses_feature.tables.significance import filter_table

    if STANDARD_STREAM in (table, source, target):
        raise UsageError("expected file names, found -")
    with Progress(has_end=False) as bar:
        done = filter_table(table, source, target, significance, Path(output), bar.show)
    lines = done.kept + done.dropped
    click.echo(
        f"{output}: {done.kept:,} of {lines:,} lines, those with -log p of {done.threshold:.3f} or "
        f"more, and {done.words:,} of words that would have no translation; the phrases of "
        f"{done.apart:,} never stand together",
        err=True,
    )
