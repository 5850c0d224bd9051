"""The command `moses-feature text prepare`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_SYSTEM_DIRECTORY
from moses_feature.cli.common.vocabulary import option
from moses_feature.moses.lines import LineReader
from moses_feature.runtime.files import STANDARD_STREAM
from moses_feature.runtime.json_files import read_json


@click.command("prepare", cls=Command, no_args_is_help=True)
@click.argument("system", type=READ_SYSTEM_DIRECTORY)
@option(
    "side",
    "The language: that which the system reads, or that which it writes.",
    default="source",
    within=["source", "target"],
)
def prepare_command(system: str, side: str) -> None:
    """Prepare raw text like the texts of a system.

    The system was built with --raw, or tuned from one that was. The standard input is raw, UTF-8, a
    sentence on each line; the output is normalised, tokenised and cased like the system's texts. If
    they are few, unknown words of the source language are spelt like the nearest known ones.

    \b
    Example:
      moses-feature text prepare system < dev.en > dev.tok.en
      moses-feature text prepare system --side target < dev.fr > dev.tok.fr
    """
    from moses_feature.building.preparation import Preparer, decoded, preparation_of
    from moses_feature.moses.ini import SYSTEM
    from moses_feature.moses.system_directory import SystemDirectory

    directory = SystemDirectory.read(Path(system)).built or Path(system)
    content = read_json(directory / SYSTEM, "a system")
    preparer = Preparer(preparation_of(content, side, directory))
    with LineReader(STANDARD_STREAM) as reader:
        for line in decoded(reader):
            click.echo(preparer(line))
    if spelt := preparer.spelt():
        first, like = next(iter(spelt.items()))
        click.echo(
            f"{len(spelt):,} unknown words were spelt like near known ones, such as "
            f"{first} like {like}",
            err=True,
        )
