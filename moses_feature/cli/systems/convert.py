"""The command `moses-feature system convert`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.paths import READ_INI, WRITE_INI


@click.command("convert", cls=Command, no_args_is_help=True)
@click.argument("old", type=READ_INI)
@click.argument("output", type=WRITE_INI)
@debug_option
def convert_command(old: str, output: str) -> None:
    """Convert a moses.ini of the old format.

    That is the format with [ttable-file], [lmodel-file] and [weight-t], of before 2013. The models
    stay where they are; language models of SRILM are read by KenLM.

    \b
    Example:
      moses-feature system convert old.ini moses.ini
    """
    from moses_feature.moses.ini import MosesIni
    from moses_feature.moses.old_ini import converted

    MosesIni(Path(old), converted(old)).write(Path(output))
