"""The command `moses-feature table binarise`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.options import table_name_option
from moses_feature.cli.common.paths import READ_TABLE, WRITE
from moses_feature.cli.common.vocabulary import option
from moses_feature.moses.binary_tables.binarise import binarise
from moses_feature.moses.binary_tables.kinds import KINDS
from moses_feature.moses.ini import MosesIni
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM


@click.command("binarise", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_TABLE)
@click.argument("output", type=WRITE)
@option(
    "kind",
    "ProbingPT (which moses2 reads, too), PhraseDictionaryCompact or PhraseDictionaryOnDisk.",
    within=KINDS,
    required=True,
)
@option(
    "moses", "The moses binary, or a folder of Moses; by default in $MOSES_HOME or on the PATH."
)
@option(
    "ask",
    "Source phrases, drawn at random, that moses is asked for afterwards; 0 for none.",
    to="asked",
    default=100,
)
@option("threads", "Of compact tables.", default=1)
@option("ini", "A moses.ini that reads the text table …")
@option("ini-out", "… to write one that reads the binary table.")
@table_name_option
@debug_option
def binarise_command(
    table: str,
    output: str,
    kind: str,
    moses: str | None,
    asked: int,
    threads: int,
    ini: str | None,
    ini_out: str | None,
    table_name: str | None,
) -> None:
    """Write a table in a binary format of Moses, and ask it back.

    Moses' own program writes it, and is told the number of scores. Then moses is asked for some
    source phrases; if it does not give the scores of the text, they are named, nothing is kept, and
    the exit code is 1. Prints the line of the table in moses.ini.

    \b
    Example:
      moses-feature table binarise augmented.gz augmented.probing --kind probing \\
          --ini moses.augmented.ini --ini-out moses.probing.ini
    """
    if (ini is None) != (ini_out is None):
        raise UsageError("--ini and --ini-out go together")
    if table == STANDARD_STREAM:
        raise UsageError("tables are read from a file, found -")
    system = None if ini is None else MosesIni.read(ini)
    done = binarise(
        Path(table),
        Path(output),
        kind,
        moses=moses,
        asked=asked,
        threads=threads,
        ini=system,
        name=table_name,
    )
    asked_for = f"{done.asked:,} source phrases ({done.pairs:,} pairs) have the scores of the text"
    click.echo(f"{done.path}: {asked_for if asked else 'not asked back'}", err=True)
    click.echo(f"not kept in it: {KINDS[kind].dropped}", err=True)
    if done.ini is not None and ini_out is not None:
        done.ini.write(Path(ini_out))
    click.echo(done.line)
