"""The file beside an augmented table that says what its new columns are."""

from __future__ import annotations

import json
from pathlib import Path

from moses_feature.errors import FormatError, MosesFeatureError
from moses_feature.files import Json, without_compression_suffix, write_json


def features_json(table: str | Path) -> Path:
    """Return the name of the file: `out.features.json` for `out.gz`."""
    path = without_compression_suffix(table)
    return path.with_name(path.name + ".features.json")


def write_features(table: str | Path, columns: dict[str, int | None], facts: Json) -> None:
    """Write the file: names and indices of the new columns, the table's name, other facts."""
    described = [{"name": name, "index": index} for name, index in columns.items()]
    write_json(features_json(table), {"columns": described, "output": Path(table).name, **facts})


def read_features(table: str | Path) -> Json:
    """Return all that the file says.

    Raises:
        MosesFeatureError: the table has no such file.
        FormatError: the file is damaged.
    """
    path = features_json(table)
    try:
        facts: Json = json.loads(path.read_bytes())
        facts["columns"]
    except OSError:
        raise MosesFeatureError(f"{path} is missing: is {table} an augmented table?") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(path, "a description of columns", f"a damaged file ({error})") from error
    return facts


def read_columns(table: str | Path) -> dict[str, int]:
    """Return the new columns of a table: their names, and indices in the score field.

    Raises:
        MosesFeatureError: the table has no such file.
        FormatError: the file is damaged.
    """
    path = features_json(table)
    try:
        columns = {column["name"]: column["index"] for column in read_features(table)["columns"]}
    except (KeyError, TypeError) as error:
        raise FormatError(path, "a description of columns", f"a damaged file ({error})") from error
    if not columns or not all(type(index) is int for index in columns.values()):
        raise FormatError(path, "a description of columns", f"{columns}")
    return columns


def described_table(table: str | Path) -> str | None:
    """Return the name of the table that the file beside `table` describes, if there is one."""
    try:
        return str(read_features(table)["output"])
    except (MosesFeatureError, KeyError):
        return None
