"""Write a text table in one of Moses' binary formats, and check that Moses reads it back."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from moses_feature.moses.binary_tables.asking import (
    TABLE,
    TableSample,
    ask,
    differences,
    sample_table,
    table_line,
)
from moses_feature.moses.binary_tables.kinds import KINDS, Job, Kind
from moses_feature.moses.ini import MosesIni, moses_path
from moses_feature.moses.ini_features import Feature
from moses_feature.moses.programs import find_program, run_program
from moses_feature.runtime.errors import DataError, MosesFeatureError, UsageError
from moses_feature.runtime.files import is_compressed, with_or_without_gz

SHOWN = 10
"""The number of differences that an error shows."""
DEFAULT_NAME = "TranslationModel0"
"""The name of a table in a moses.ini by train-model.perl."""


@dataclass(frozen=True)
class Binarised:
    """The result of `binarise`.

    Attributes:
        path: the binary table, as named in an ini.
        line: its line for an ini.
        scores: the number of scores in each line.
        asked: the number of source phrases looked up.
        pairs: the number of their phrase pairs, all found with the same scores.
        ini: an ini that reads the binary table, if one was given.
    """

    path: Path
    line: str
    scores: int
    asked: int
    pairs: int
    ini: MosesIni | None


def binarise(
    table: Path,
    output: Path,
    kind: str,
    *,
    moses: str | None = None,
    asked: int = 100,
    threads: int = 1,
    ini: MosesIni | None = None,
    name: str | None = None,
) -> Binarised:
    """Write `table` in a binary format.

    Args:
        table: a text table, plain or compressed by gzip.
        output: a new file or folder; the suffix `.minphr` is added for compact tables.
        kind: one of `KINDS`.
        moses: the decoder's binary, or a folder of Moses.
        asked: the number of source phrases to look up afterwards; 0 for none.
        threads: threads of the program, if it has any.
        ini: an ini that reads the text table, to be changed.
        name: the name of the table in the ini, if it has several.

    Raises:
        UsageError: the program is missing, or the output exists.
        FormatError: the table is damaged, or has another number of scores in the ini.
        DataError: the binary table gives other scores; it is not kept.
        MosesFeatureError: a program of Moses fails.
    """
    form = KINDS[kind]
    program = _program(form, moses)
    decoder = find_program(["moses"], moses) if asked else None
    path = output
    if form.suffix and not output.name.endswith(form.suffix):
        path = output.with_name(output.name + form.suffix)
    if os.path.lexists(path):
        raise UsageError(f"{path}: expected a new path, found a file or folder")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent}: expected a folder, found none")
    moses_path(path)
    if is_compressed(table) and table.suffix != ".gz":
        raise DataError(f"{table}: expected a table that is plain or compressed by gzip")
    sample = sample_table(table, asked)
    feature = None if ini is None else _table_of(ini, name, table, sample.scores)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        maker = _Maker(form, program, decoder, sample, Path(folder), threads)
        maker.try_small()
        _move(maker.make(table.absolute(), path.name), path)
    if ini is not None and feature is not None:
        ini = ini.with_table(feature, form.feature, path)
    name = DEFAULT_NAME if feature is None else feature.name
    line = table_line(form.feature, path.absolute(), sample.scores, name)
    return Binarised(path, line, sample.scores, len(sample.targets), len(sample.drawn), ini)


def _table_of(ini: MosesIni, name: str | None, table: Path, scores: int) -> Feature:
    """Return the ini's table; if its file exists, it must be `table`."""
    feature = ini.table(name)
    if feature.score_count != scores:
        expected = f"num-features={scores} as in {table}"
        raise ini.error(feature.line_number, expected, f"{feature.score_count}")
    place = with_or_without_gz(feature.path)
    if place.is_file() and not place.samefile(table):
        raise ini.error(feature.line_number, f"a table {table}", f"{place}")
    return feature


def _program(kind: Kind, moses: str | None) -> Path:
    try:
        return find_program(kind.programs, moses)
    except UsageError as error:
        raise UsageError(f"{error}; {kind.missing}") from None


@dataclass(frozen=True)
class _Maker:
    """Runs the program and looks up phrases in its output; see `binarise`."""

    kind: Kind
    program: Path
    decoder: Path | None
    sample: TableSample
    scratch: Path
    threads: int

    def try_small(self) -> None:
        """Make a table of the sample alone first: faults of the programs show within a second."""
        if self.decoder is not None:
            small = self.scratch / "small.txt"
            lines = [line if line.endswith(b"\n") else line + b"\n" for line in self.sample.drawn]
            small.write_bytes(b"".join(lines))
            self.make(small, f"small{self.kind.suffix}")

    def make(self, table: Path, name: str) -> Path:
        """Make and return the binary table."""
        written = self.scratch / name
        job = Job(table, self.sample.scores, written, self.scratch, self.threads)
        command = [str(self.program), *self.kind.options(job)]
        run_program(command, self.scratch / "log", environment={"LC_ALL": "C"})
        if not written.exists():
            raise MosesFeatureError(f"{self.program}: expected a table {name}, found none")
        if self.decoder is not None:
            self._ask_back(self.decoder, written)
        return written

    def _ask_back(self, decoder: Path, written: Path) -> None:
        line = table_line(self.kind.feature, written.absolute(), self.sample.scores, TABLE)
        targets = self.sample.targets
        wrong = differences(targets, ask(decoder, line, self.sample.scores, targets, self.scratch))
        if wrong:
            more = f"\n… and {len(wrong) - SHOWN:,} more" if len(wrong) > SHOWN else ""
            raise DataError(
                f"{decoder} reads other scores from the {self.kind.name} table than from the text "
                "(natural logs):\n" + "\n".join(wrong[:SHOWN]) + more
            )


def _move(written: Path, path: Path) -> None:
    """Move the written table to its place, in one step."""
    for file in (written, *written.rglob("*")):
        if file.is_file():
            with file.open("rb") as content:
                os.fsync(content.fileno())
    shutil.move(written, path)
