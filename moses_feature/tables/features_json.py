"""The file `*.features.json` beside an augmented table, which describes its new columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import Json, without_compression_suffix, write_json
from moses_feature.runtime.json_files import member, read_json, record


def features_json(table: str | Path) -> Path:
    """Return the name of the file: `out.features.json` for `out.gz`."""
    path = without_compression_suffix(table)
    return path.with_name(path.name + ".features.json")


def write_features(table: str | Path, columns: Mapping[str, int | None], facts: Json) -> None:
    """Write the file: names and indices of the new columns, the table's name, other facts."""
    described = [{"name": name, "index": index} for name, index in columns.items()]
    write_json(features_json(table), {"columns": described, "output": Path(table).name, **facts})


def add_facts(table: str | Path, facts: Json) -> None:
    """Add facts to the file of a table."""
    write_json(features_json(table), {**read_features(table), **facts})


def read_features(table: str | Path) -> Json:
    """Return the content of the file.

    Raises:
        MosesFeatureError: the table has no such file.
        FormatError: the file is damaged.
    """
    path = features_json(table)
    what = "a description of columns"
    try:
        facts = read_json(path, what)
    except OSError:
        raise MosesFeatureError(f"{path} is missing: is {table} an augmented table?") from None
    member(facts, "columns", list[dict[str, Any]], path, what)
    return facts


def read_columns(table: str | Path) -> dict[str, int]:
    """Return the new columns of a table: names, and indices in the score field.

    Raises:
        MosesFeatureError: the table has no such file.
        FormatError: the file is damaged.
    """
    path = features_json(table)
    what = "a description of columns"
    columns: dict[str, int] = {}
    for column in read_features(table)["columns"]:
        name = member(column, "name", str, path, what)
        index = member(column, "index", int, path, what)
        if name in columns or index < 0:
            raise FormatError(
                path, what, f"{name!r} twice" if name in columns else f"index {index}"
            )
        columns[name] = index
    if not columns:
        raise FormatError(path, what, "no column")
    return columns


def table_words(table: str | Path) -> TableWords:
    """Return how the tokens of an augmented table became words for its scores.

    Raises:
        MosesFeatureError: the table has no such file.
        FormatError: the file is damaged.
    """
    path, facts = features_json(table), read_features(table)
    settings = member({"settings": {}, **facts}, "settings", dict[str, Any], path, "facts")
    given = {f.name: settings[f.name] for f in fields(TableWords) if f.name in settings}
    return record(TableWords, given, path, "how a table was scored")


def texts_of(table: str | Path) -> dict[str, str]:
    """Return the texts whose phrases alone are in a table, with their SHA-256; {} for a whole one.

    Raises:
        FormatError: the file is damaged.
    """
    if not features_json(table).is_file():
        return {}
    facts = {"texts": {}, **read_features(table)}
    texts: dict[str, str] = member(
        facts, "texts", dict[str, str], features_json(table), "a description of columns"
    )
    return texts


def described_table(table: str | Path) -> str | None:
    """Return the name of the table that the file beside `table` describes, if any."""
    try:
        output = read_features(table).get("output")
    except MosesFeatureError:
        return None
    return output if isinstance(output, str) else None
