"""The command `moses-feature describe`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_PATH
from moses_feature.cli.common.vocabulary import option
from moses_feature.moses.system_directory import INI, SystemDirectory
from moses_feature.runtime.errors import printable

OF_A_MODEL = b"\\"
"""The first byte of a language model in NPLM's format."""


@click.command("describe", cls=Command, no_args_is_help=True)
@click.argument("path", type=READ_PATH)
@option("as-ini", "Print the moses.ini of a system with absolute paths, as Moses needs it.")
def describe_command(path: str, as_ini: bool) -> None:
    """Say what a model or a system is.

    Of a model (or a file in NPLM's format): its sizes, its words, how it was trained. Of a system
    (or a moses.ini): features and weights, models that rescore, what it was built of and tuned on,
    how good it was there, and which files it needs from elsewhere.

    \b
    Example:
      moses-feature describe my.model
      moses-feature describe table1/RNN/seed-1
      moses-feature describe tuned --as-ini > moses.ini
    """
    from moses_feature.cli.models.describe import describe_model
    from moses_feature.cli.systems.describe import describe_system

    if as_ini:
        click.echo(SystemDirectory.read(Path(path)).moses_ini().content(), nl=False)
        return
    describe = describe_model if _is_model(Path(path)) else describe_system
    for name, value in describe(Path(path)):
        click.echo(printable(f"{name:<22} {value}"))


def _is_model(path: Path) -> bool:
    if not path.is_file():
        return not (path / INI).is_file()
    with path.open("rb") as file:
        return file.read(1) == OF_A_MODEL
