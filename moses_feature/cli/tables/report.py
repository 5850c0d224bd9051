"""The command `moses-feature table report`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_AUGMENTED, READ_MODEL
from moses_feature.cli.common.vocabulary import option
from moses_feature.runtime.errors import UsageError
from moses_feature.tables.settings import ReportSettings


@click.command("report", cls=Command, no_args_is_help=True)
@click.argument("table", type=READ_AUGMENTED)
@click.argument("model", type=READ_MODEL)
@option("output", "The page.", default="report.html")
@option("map-words", "Words of their map at most.", default=ReportSettings.words)
@option("map-phrases", "Phrases of their map at most.", default=ReportSettings.phrases)
@option("exports", "Also write the maps there, as text for other tools (TensorBoard's projector).")
@option("seed", "Of samples and maps.", default=ReportSettings.seed)
def report_command(
    table: str,
    model: str,
    output: str,
    map_words: int,
    map_phrases: int,
    exports: str | None,
    seed: int,
) -> None:
    """Compare a network with its table, as a page for a browser.

    TABLE is an augmented table, MODEL the model that scored it. The page needs no
    network: how table and network agree (the paper's Figure 3), where they do not, long phrases
    and what the network writes for them (Tables 2 and 3), maps of words and phrases (Figures 4 and
    5), losses.

    \b
    Example:
      moses-feature table report augmented.gz augmented.model --output report.html
    """
    from moses_feature.report.report import write_report

    directory = Path(exports) if exports else None
    _check_output(Path(output), directory)
    settings = ReportSettings(map_words, map_phrases, seed)
    write_report(table, Path(model), Path(output), settings, directory)
    click.echo(f"{output}: open it in a browser")


def _check_output(output: Path, exports: Path | None) -> None:
    """Check that the page can be written, before an hour is spent.

    Raises:
        UsageError: it cannot.
    """
    if not output.name or output.is_dir():
        raise UsageError(f"--output {output}: expected the name of a file")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"--output {output}: there is no directory {output.absolute().parent}")
    if exports is not None:
        if exports.exists() and not exports.is_dir():
            raise UsageError(f"--exports {exports}: expected a directory, found a file")
        if output.absolute().parent == exports.absolute():
            raise UsageError(f"--output {output} is among the --exports: write it somewhere else")
