"""The command `moses-feature table report`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_AUGMENTED, READ_MODEL
from moses_feature.cli.common.vocabulary import option
from moses_feature.runtime.errors import UsageError


@click.command("report", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_AUGMENTED)
@click.argument("model", type=READ_MODEL)
@option("output", "The page; text, if the name ends in .txt.", default="report.html")
@option("seed", "Of samples and maps.", default=1)
def report_command(table: str, model: str, output: str, seed: int) -> None:
    """Compare a network with its table, as a page for a browser.

    TABLE is an augmented table, MODEL the model that scored it. The page needs no
    network: how table and network agree (the paper's Figure 3), where they do not, long phrases
    and what the network writes for them (Tables 2 and 3), maps of words and phrases (Figures 4 and
    5), losses. As text, it has the long phrases alone.

    \b
    Example:
      moses-feature table report augmented.gz augmented.model --output report.html
      moses-feature table report augmented.gz augmented.model --output phrases.txt
    """
    from moses_feature.report.report import write_report

    path = Path(output)
    if not path.name or path.is_dir():  # before minutes are spent
        raise UsageError(f"--output {path}: expected the name of a file")
    write_report(table, Path(model), path, seed)
    click.echo(f"{output}: open it in a browser" if path.suffix != ".txt" else output)
