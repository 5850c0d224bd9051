"""The command `moses-feature system pack`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.paths import READ_SYSTEM_DIRECTORY, WRITE
from moses_feature.runtime.errors import UsageError


@click.command("pack", cls=Command, no_args_is_help=True)
@click.argument("system", type=READ_SYSTEM_DIRECTORY)
@click.argument("output", type=WRITE)
@debug_option
def pack_command(system: str, output: str) -> None:
    """Put a system into one file, to translate elsewhere.

    OUTPUT, such as tuned.tar, holds the folder tuned: moses.ini, tables, models, weights, and how
    text was prepared. Unpack it with tar, anywhere; `translate` and `serve` take the folder.
    Indexes of tables are not packed: they are made when they are needed.

    \b
    Example:
      moses-feature system pack tuned tuned.tar
    """
    from moses_feature.translation.packing import pack

    path = Path(output)
    if path.suffix != ".tar":
        raise UsageError(f"expected a name that ends in .tar, found {output}")
    sizes = pack(Path(system), path)
    click.echo(f"{output}: {len(sizes)} files, {sum(sizes.values()) >> 20:,} MiB", err=True)
