"""Paths on the command line: inputs, outputs, and a check that no input is overwritten."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from moses_feature.moses.ini import MosesIni
from moses_feature.moses.marked_models import split_mark
from moses_feature.moses.nbest_lists import NAME
from moses_feature.moses.system_directory import INI, SYSTEM_FILES
from moses_feature.networks.files import (
    CONFIG,
    MODEL_FILES,
    is_ctranslate2,
    is_model_directory,
)
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM, is_compressed, with_or_without_gz
from moses_feature.tables.features_json import features_json
from moses_feature.tables.writer import TableWriter

NO_PATH = "expected a file name, found an empty one"
_WITHOUT_GZ = "moses_feature.table_named_without_gz"


class InputPath(click.Path):
    """A file or directory that is read.

    Args:
        metavar: its name in the help.
        named: it may follow a name and an equals sign.
        described: the file that describes an augmented table is read, too.
        endings: suffixes appended to the value, each giving a file.
        table: it is a phrase table, which may be named without its .gz, as in Moses' own tools and
            EMS; the output then gets a .gz, too.
        ini: it is or may be a moses.ini, and the files that it names are read, too.
        system: it is the directory of a system, all of whose own files are read, or its ini.
        once: it is read once, from its beginning to its end, so that it may be a pipe. Other inputs
            are read again, or by another process: a pipe would be empty then.
    """

    def __init__(
        self,
        metavar: str,
        *,
        named: bool = False,
        described: bool = False,
        endings: tuple[str, ...] = ("",),
        table: bool = False,
        ini: bool = False,
        system: bool = False,
        once: bool = False,
    ) -> None:
        super().__init__()
        self.name = metavar
        self._once = once
        self._named = named
        self._ini = ini or system
        self._system = system
        self._described = described
        self._endings = endings
        self._table = table

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the path; that of a table with its .gz."""
        path = str(super().convert(value, param, ctx))
        if not path:  # of an unset variable, perhaps; it would mean the directory here
            self.fail(NO_PATH, param, ctx)
        if not self._once and any(file.is_fifo() for file in self.files(path)[:1]):
            self.fail(f"{path}: expected a file, found a pipe, which can be read once only")
        found = str(with_or_without_gz(path)) if self._table else path
        if found != path and ctx is not None:
            ctx.meta[_WITHOUT_GZ] = True
        return found

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer paths; where a model is expected, directories, and models among them whole."""
        if not self._named and not self.name.endswith("MODEL"):
            return super().shell_complete(ctx, param, incomplete)
        name, equals, begun = incomplete.rpartition("=") if self._named else ("", "", incomplete)
        mark, begun = split_mark(begun)
        mark += ":" if mark else ""
        found = _paths_from(begun, models=self.name.endswith("MODEL"))
        return [CompletionItem(f"{name}{equals}{mark}{path}") for path in found]

    def files(self, value: str) -> list[Path]:
        """Return the files that are read for a value; none for the standard input."""
        if self._named:
            _, value = split_mark(value.rpartition("=")[2])
        if value in (STANDARD_STREAM, ""):
            return []
        files = [Path(value + ending) for ending in self._endings]
        if self._system and Path(value).is_dir():
            own = (found for pattern in SYSTEM_FILES for found in Path(value).glob(pattern))
            files = [Path(value) / INI, *own]
        if self._described:
            files.append(features_json(value))
        if self._ini:
            with suppress(MosesFeatureError, OSError):  # errors are reported when it is read
                files += MosesIni.read(files[0]).files()
        return files


def _paths_from(begun: str, *, models: bool) -> list[str]:
    """Return paths that begin so; a directory that may hold what is meant ends in a slash."""
    folder, _, start = begun.rpartition("/")
    at = folder + "/" * (len(begun) > len(start))
    found = []
    for path in sorted(Path(at or ".").glob(f"{glob.escape(start)}*")):
        is_model = is_model_directory(path)
        if is_model or (path.is_file() and not models):
            found.append(f"{at}{path.name}")
        elif path.is_dir():
            found.append(f"{at}{path.name}/")
    return found


class OutputPath(click.Path):
    """A file or directory that is written.

    Args:
        metavar: its name in the help.
        files: returns all files that are written for a value.
        in_place: the name of the parameter that may be the same file.
        table: it is a phrase table; see `InputPath`.
        makes_folder: the folder of the file is created if missing.
    """

    def __init__(
        self,
        metavar: str,
        files: Callable[[str], list[Path]] = lambda value: [Path(value)],
        in_place: str = "",
        table: bool = False,
        makes_folder: bool = False,
    ) -> None:
        super().__init__()
        self.name = metavar
        self.files = files
        self.in_place = in_place
        self.makes_folder = makes_folder
        self._table = table

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the path; with .gz where the table that is read was named without it."""
        path = str(super().convert(value, param, ctx))
        if not path:
            self.fail(NO_PATH, param, ctx)
        if path == STANDARD_STREAM:
            if not self._table:
                self.fail("expected a file name, found -", param, ctx)
            return path
        without = self._table and ctx is not None and _WITHOUT_GZ in ctx.meta
        return f"{path}.gz" if without and not is_compressed(path) else path


def _table_files(value: str) -> list[Path]:
    if not Path(value).name:  # no file name: refused when it is opened
        return [Path(value)]
    return [*TableWriter(value).files(), features_json(value)]


def _model_files(value: str) -> list[Path]:
    return [Path(value), *(Path(value) / name for name in MODEL_FILES)]


READ = InputPath("FILE")
READ_ONCE = InputPath("FILE", once=True)
READ_INI = InputPath("FILE", ini=True)
READ_TABLE = InputPath("FILE", table=True, once=True)
READ_AUGMENTED = InputPath("FILE", described=True, table=True)
READ_LEXICAL = InputPath("PREFIX", endings=(".f2e", ".e2f"))
READ_MODEL = InputPath("MODEL")
READ_NAMED_MODEL = InputPath("[NAME=]MODEL", named=True)
READ_SYSTEM = InputPath("NAME=INI", named=True, ini=True)
READ_SYSTEM_DIRECTORY = InputPath("SYSTEM", system=True)
READ_PATH = InputPath("PATH", table=True)
READ_TRANSLATIONS = InputPath("NAME=FILE", named=True)
WRITE = OutputPath("FILE")
WRITE_INI = OutputPath("FILE", in_place="ini")
WRITE_TABLE = OutputPath("FILE", files=_table_files, table=True)
WRITE_MODEL = OutputPath("MODEL", files=_model_files, makes_folder=True)
WRITE_SYSTEM = OutputPath("SYSTEM", makes_folder=True)
WRITE_DIRECTORY = OutputPath("DIRECTORY", makes_folder=True)


def named_models(given: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """Parse `NAME=DIRECTORY …`; return each name with its directories.

    Raises:
        UsageError: several directories without names, or an invalid name.
    """
    found: dict[str, list[Path]] = {}
    for text in given:
        name, equals, path = ("", "", text) if Path(text).is_dir() else text.rpartition("=")
        if (equals and not NAME.fullmatch(name)) or not path:
            raise UsageError(f"{text}: expected NAME=DIRECTORY, the name of letters and digits")
        found.setdefault(name, []).append(Path(path))
    if len(given) > 1 and "" in found:
        raise UsageError(
            f"{found[''][0]}: several models need names, such as forward={found[''][0]}; those of "
            "one name are averaged"
        )
    return list(found.items())


def check_outputs(context: click.Context) -> None:
    """Check that no file is both read and written, written twice, or part of a model.

    Raises:
        UsageError: a file is.
    """
    read: list[tuple[str, Path]] = []
    written: list[tuple[str, OutputPath, str, Path]] = []
    for name, kind, value in _all_values(context):
        if isinstance(kind, InputPath):
            files = kind.files(value)  # the first one may be changed in place, no other
            read += [("" if number else name, path) for number, path in enumerate(files)]
        elif isinstance(kind, OutputPath) and value != STANDARD_STREAM:
            _check_folder(value, kind)
            written += [(name, kind, value, path) for path in kind.files(value)]
    for number, (name, kind, value, path) in enumerate(written):
        _check_not_read(kind, value, path, read)
        folder = path.absolute()
        if kind is not WRITE_MODEL or path == Path(value):  # not its own files
            _check_no_model(value, folder if kind is WRITE_DIRECTORY else folder.parent)
        for other_name, _, other_value, other in written[:number]:
            if name != other_name and _same(path, other):
                raise UsageError(f"{value} would overwrite what is written to {other_value}")


def _check_not_read(
    kind: OutputPath, value: str, path: Path, read: Iterable[tuple[str, Path]]
) -> None:
    if stream := _standard_stream(path):
        raise UsageError(f"{path} is the standard {stream}: write to another file")
    for name, other in read:
        if (not name or name != kind.in_place) and _same(path, other):
            other_file = "another file" if str(other) == value else f"another file than {value}"
            raise UsageError(f"{other} would be overwritten: write to {other_file}")


def _standard_stream(path: Path) -> str | None:
    """Return the standard stream that a file is; it would be replaced while it is written."""
    for number, name in enumerate(("input", "output", "error stream")):
        with suppress(OSError):  # it is closed, or nothing can be looked at
            if path.is_file() and os.path.samestat(path.stat(), os.fstat(number)):
                return name
    return None


def _check_folder(value: str, kind: OutputPath) -> None:
    folder = Path(value).absolute().parent
    if not kind.makes_folder and not folder.is_dir():
        raise UsageError(f"{value}: there is no directory {folder}")


def _check_no_model(value: str, folder: Path) -> None:
    converted = is_ctranslate2(folder) and (folder / CONFIG).is_file()
    if converted or is_model_directory(folder):
        where = "is" if folder == Path(value).absolute() else f"is in {folder},"
        raise UsageError(f"{value} {where} a model directory: write to another one")


def _all_values(context: click.Context) -> Iterator[tuple[str, click.ParamType[Any], str]]:
    for parameter in context.command.params:
        name = parameter.name or ""
        for kind, value in _values(parameter.type, context.params.get(name)):
            yield name, kind, value


def _same(path: Path, other: Path) -> bool:
    try:
        return path.resolve() == other.resolve() or (
            path.exists() and other.exists() and path.samefile(other)
        )
    except (OSError, RuntimeError):  # what cannot be looked at is refused when it is opened
        return False


def _values(kind: click.ParamType[Any], value: Any) -> Iterator[tuple[click.ParamType[Any], str]]:
    """Yield the values of a parameter with their types, also of one that takes several."""
    if isinstance(kind, click.Tuple) and isinstance(value, tuple):
        for one, part in zip(kind.types, value, strict=True):
            yield from _values(one, part)
    elif isinstance(value, tuple):
        for part in value:
            yield from _values(kind, part)
    elif isinstance(value, str):
        yield kind, value
