"""Checks of `augment-phrase-table` before anything is read, trained or written."""

from __future__ import annotations

from pathlib import Path

from moses_feature.moses.ini import MosesIni
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM
from moses_feature.tables.features_json import described_table, features_json
from moses_feature.tables.writer import TableWriter


def check_files(table: str, output: str, trains: bool, resume: bool) -> None:
    """Check that the table can be read and the output written.

    Raises:
        MosesFeatureError: the table cannot be read.
        UsageError: options contradict each other.
    """
    _check_table(table, trains)
    if output == STANDARD_STREAM:
        if trains:
            raise UsageError("writing to the standard output needs --model")
        return
    path = Path(output)
    if output.endswith("/") or path.is_dir():
        raise UsageError(f"{output}: expected a file name, found a directory")
    if path.exists() and not path.is_file():
        raise UsageError(
            f"{output}: expected a file name, found a special file; - writes to stdout"
        )
    writer = TableWriter(output)
    if resume:
        writer.refuse_whole()
    else:
        writer.refuse_unfinished()
    _check_description(path)


def _check_table(table: str, trains: bool) -> None:
    if table == STANDARD_STREAM:
        if trains:
            raise UsageError("training reads the table first: give a file name or --model")
        return
    path = Path(table)
    if path.is_dir():
        raise MosesFeatureError(f"{table}: expected a file, found a directory")
    if not path.exists():
        raise MosesFeatureError(f"{table}: No such file or directory")
    if trains and not path.is_file():
        raise UsageError(f"{table} can be read only once, training needs it twice: give --model")


def _check_description(output: Path) -> None:
    """Check that another table's description would not be overwritten."""
    other = described_table(output)
    if other is not None and other != output.name and (output.parent / other).exists():
        raise UsageError(
            f"{features_json(output)} describes {other}: choose an output that differs in more "
            "than its suffix"
        )


def check_inis(output: str, ini: str | None, ini_out: str | None, table_name: str | None) -> None:
    """Check that the ini can be changed and written.

    Raises:
        MosesFeatureError: Moses would refuse the ini.
        UsageError: options contradict each other.
    """
    if ini is None or ini_out is None:
        if ini or ini_out:
            raise UsageError("--ini and --ini-out go together")
        if table_name:
            raise UsageError("--table-name goes with --ini")
        return
    if output == STANDARD_STREAM:
        raise UsageError("an ini cannot name the standard output: not with --ini")
    read = MosesIni.read(ini)
    read.check_names()
    read.table(table_name)
    path = Path(ini_out)
    if not path.name or path.is_dir():
        raise UsageError(f"--ini-out {ini_out}: expected a file name")
