"""The command `moses-feature system add`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.options import table_name_option
from moses_feature.cli.common.paths import READ_INI, WRITE_INI
from moses_feature.cli.common.vocabulary import option
from moses_feature.moses.binary_tables import score_count
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import TABLE_CLASS
from moses_feature.runtime.errors import FormatError, UsageError


@click.command("add", cls=Command, no_args_is_help=True)
@click.argument("ini", type=READ_INI)
@click.argument("output", type=WRITE_INI)
@option("table", "An augmented table, text or compressed.")
@option(
    "same-table",
    "The table that the ini reads is the augmented one, and the ini says too few scores.",
)
@option(
    "binary-path",
    "That table in the binary format that the ini has, as Moses' program for it writes it.",
)
@option(
    "model",
    "A neural language model: a model directory, or an NPLM file; CSLM0 unless named. Repeatable.",
    to="models",
    many=True,
)
@table_name_option
@option(
    "weight",
    "Start weight of a new score, in order; 0.1 each by default. A score of weight 0 is not "
    "tuned and takes no part. Repeatable, for the scores of a table; of models, that of each.",
    to="weights",
    many=True,
)
def add_command(
    ini: str,
    output: str,
    table: str | None,
    same_table: bool,
    binary_path: str | None,
    models: tuple[str, ...],
    table_name: str | None,
    weights: tuple[float, ...],
) -> None:
    """Add a table's new scores, or a model, to a moses.ini.

    All else stays as it is, to the byte. OUTPUT may be INI itself.

    \b
    Example:
      moses-feature system add moses.ini moses.augmented.ini --table augmented.gz
      moses-feature system add moses.ini rnn.ini --table augmented.gz --weight 0.1 --weight 0
      moses-feature system add rnn.ini cslm+rnn.ini --model french.cslm
    """
    from moses_feature.tables.add_to_ini import START_WEIGHT, add_models, add_to_ini

    files = Path(ini), Path(output)
    if bool(models) + (table is not None) + same_table != 1:
        raise UsageError("expected --table, --same-table or --model, one of them")
    if table is not None or same_table:
        binary = None if binary_path is None else Path(binary_path)
        path = None if table is None else Path(table)
        if binary is not None:
            _check_binary(MosesIni.read(ini), table_name, binary, path)
        report_ini(output, add_to_ini(*files, path, table_name, weights, binary), binary)
        return
    if table_name or binary_path or len(weights) > 1:
        raise UsageError("--table-name, --binary-path, and more than one --weight, are for --table")
    weight = weights[0] if weights else START_WEIGHT
    for feature in add_models(*files, models, weight):
        click.echo(f"{output}: {feature} with start weight {weight:g}", err=True)
    say_how_to_tune(output)


def _check_binary(ini: MosesIni, name: str | None, binary: Path, table: Path | None) -> None:
    """Check that a binary table is of the ini's kind, and has as many scores as the text one."""
    from moses_feature.tables.add_to_ini import first_line_scores

    if table is None:
        raise UsageError("--binary-path needs --table, the same table as text")
    feature = ini.table(name)
    if feature.kind == TABLE_CLASS or not binary.exists():
        return  # said by `add_to_ini`
    there, expected = score_count(feature.kind, binary), first_line_scores(table)
    if there is not None and there != expected:
        raise FormatError(binary, f"{expected} scores as in {table}", f"{there}")


def report_ini(output: str, weights: list[float], binary: Path | None = None) -> None:
    """Print the start weights of the new scores."""
    values = " ".join(f"{weight:g}" for weight in weights)
    click.echo(f"{output}: {len(weights)} new scores with start weights {values}", err=True)
    say_how_to_tune(output, "" if binary is None else " --decoder moses")


def say_how_to_tune(ini: str, options: str = "") -> None:
    """Print how to tune: start weights are only a beginning."""
    click.echo(
        "start weights translate badly until all weights are tuned together:\n"
        f"  mert-tune {ini} --dev TEXT --dev-reference TRANSLATION --work-dir DIRECTORY"
        f"{options}",
        err=True,
    )
