"""The command `moses-feature table check`."""

from __future__ import annotations

import sys

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_TABLE
from moses_feature.tables.check import check_table


@click.command("check", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_TABLE)
def check_command(table: str) -> None:
    """Find lines that Moses would reject or misread.

    The exit code is 1 if there is a problem. Notes on what does not hinder Moses are printed too,
    and do not change the exit code. `system doctor` looks at the ini that reads the table, too.

    \b
    Example:
      moses-feature table check augmented.gz
    """
    findings = check_table(table)
    problems = [finding for finding in findings if not finding.harmless]
    for finding in findings:
        click.echo(f"{'note' if finding.harmless else 'problem'}: {finding}")
    if problems:
        sys.exit(1)
    click.echo(f"{table}: nothing that Moses would reject or misread")
