"""The command `moses-feature table merge`."""

from __future__ import annotations

import click

from moses_feature.cli.common.command import Command, command_line, debug_option
from moses_feature.cli.common.paths import READ, WRITE_TABLE
from moses_feature.tables.shards import merge


@click.command("merge", cls=Command, no_args_is_help=True)
@click.argument("shards", nargs=-1, required=True, type=READ)
@click.argument("output", type=WRITE_TABLE)
@debug_option
def merge_command(shards: tuple[str, ...], output: str) -> None:
    """Join the shards of augment-phrase-table --shard.

    They may be given in any order. OUTPUT and its *.features.json are, to the byte, what a run
    without --shard would have written (but for the commands in the latter).

    \b
    Example:
      moses-feature table merge augmented.1.gz augmented.2.gz augmented.gz
    """
    facts = merge(shards, output, command_line())
    click.echo(f"{output}: {facts['lines_written']:,} lines of {len(shards)} shards", err=True)
