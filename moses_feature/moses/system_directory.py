"""System directories: as `system build` writes them, and as tuning does."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moses_feature.moses.ini import SYSTEM, MosesIni
from moses_feature.moses.marked_models import with_path
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import Json, write_json
from moses_feature.runtime.json_files import member, read_json

INI = "moses.ini"
SYSTEM_FILES = (
    SYSTEM,
    "build.json",
    "preparation.json",
    INI,
    "aligned.*",
    "lex.*",
    "lm.arpa.gz",
    "lm.binary",
    "phrase-table.gz",
    "reordering-table.*",
    "rescoring.weights",
    "text.*",
    "truecase.*",
    "words.*",
    "files/**/*",
)
"""Patterns of the files that systems have, packed ones too."""
NOT_MADE = (SYSTEM, "build.json", INI)
"""Files that are not those of `made_files`: users may change an ini."""
WHAT = "a system of moses-feature"
FORMAT_VERSION = 1
MOST_TRANSLATIONS = 10_000
"""Of a list."""


@dataclass(frozen=True)
class SystemDirectory:
    """What translating needs to know of a system.

    Attributes:
        ini: its moses.ini.
        built: the directory of `system build` whose texts it was built of; None if there is none.
        rescoring: names and paths of the models that rescore its n-best lists.
        weights: the weights that put rescored lists in order; None without such models.
        list_size: translations of a list that is rescored.
    """

    ini: Path
    built: Path | None = None
    rescoring: tuple[tuple[str, str], ...] = ()
    weights: Path | None = None
    list_size: int = 1

    @classmethod
    def read(cls, path: Path) -> SystemDirectory:
        """Read a directory, or take a moses.ini by itself.

        Raises:
            MosesFeatureError: there is no system.
            FormatError: its `system.json` is damaged, or of a newer version.
        """
        if path.is_file():
            return cls(path)
        ini, facts = path / INI, path / SYSTEM
        if not ini.is_file():
            runs = sorted(path.glob(f"*/seed-*/{INI}")) or sorted(path.glob(f"seed-*/{INI}"))
            hint = f": is {runs[-1].parent} meant?" if runs else ""
            raise MosesFeatureError(f"{path}: expected {WHAT} with a {INI}, found none{hint}")
        if not facts.is_file():
            return cls(ini)
        content = read_json(facts, WHAT)
        version = member(content, "format_version", int, facts, WHAT)
        if version > FORMAT_VERSION:
            raise MosesFeatureError(
                f"{facts}: expected format version {FORMAT_VERSION} or older, found {version}: it "
                "is of a newer moses-feature"
            )
        if "tuned" not in content:
            return cls(ini, path)
        built = member(content, "built", str | None, facts, WHAT)
        rescoring = member(content, "rescoring", list[tuple[str, str]], facts, WHAT)
        size = member(content, "list_size", int, facts, WHAT)
        if not 1 <= size <= MOST_TRANSLATIONS:
            raise FormatError(facts, f"list_size: 1 to {MOST_TRANSLATIONS}", f"{size}")
        return cls(
            ini,
            None if built is None else path / built,
            tuple((name, with_path(model, lambda of: str(path / of))) for name, model in rescoring),
            path / member(content, "weights", str, facts, WHAT) if rescoring else None,
            size,
        )

    def moses_ini(self, faults: list[FormatError] | None = None) -> MosesIni:
        """Read its ini; see `MosesIni` about `faults`."""
        return MosesIni.read(self.ini, faults)


def made_files(directory: Path) -> dict[str, tuple[int, str]]:
    """Return size and SHA-256 of the files that building has made, by their names."""
    paths = (path for pattern in SYSTEM_FILES for path in directory.glob(pattern))
    return {
        str(path.relative_to(directory)): (path.stat().st_size, _sha256(path))
        for path in sorted(paths)
        if path.is_file() and path.name not in NOT_MADE
    }


def changed_files(
    directory: Path, content: Json, names: Container[str] | None = None
) -> Iterator[tuple[Path, str]]:
    """Yield the files of a built system that are not there as they were made, and what was found.

    Args:
        directory: the system.
        content: of its `system.json`; that of version 0.2 does not have them.
        names: the files to look at; None for all.
    """
    made = member({"made": {}, **content}, "made", dict[str, tuple[int, str]], directory, WHAT)
    for name, (size, digest) in made.items():
        path = directory / name
        if names is not None and name not in names:
            continue
        if not path.is_file():
            yield path, "no such file"
        elif path.stat().st_size != size:
            yield path, f"{path.stat().st_size:,} bytes, and {size:,} were written"
        elif _sha256(path) != digest:
            yield path, "another file of the same size"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def built_of(ini: Path) -> Path | None:
    """Return the directory of `system build` that the system of an ini comes from, if any."""
    if not (ini.parent / SYSTEM).is_file():
        return None
    built = SystemDirectory.read(ini.parent).built
    return None if built is None else built.absolute()


def write_relative_ini(directory: Path, ini: MosesIni, built: Path | None = None) -> list[str]:
    """Write the ini of a system, which names the files that belong to it from its own folder.

    These are the files of the directory; of a tuned system also those of the folder that holds the
    system that it was built from, so that both move together.

    Args:
        directory: the system.
        ini: with absolute paths.
        built: see `built_of`.

    Returns:
        Other files that it names, by their absolute paths.
    """
    relative = ini.relative_to(directory, _home(directory, built))
    relative.write(directory / INI)
    return sorted(name for name in relative.named_files() if Path(name).is_absolute())


def _home(directory: Path, built: Path | None) -> Path:
    return directory if built is None else built.parent


def write_tuned(
    directory: Path,
    built: Path | None,
    rescoring: Sequence[tuple[str, str]],
    weights: str | None,
    list_size: int,
    tuned: Json,
) -> None:
    """Write the `system.json` of a tuned system, and make the paths of its ini relative.

    Its ini and weights are there already.

    Args:
        directory: the directory of the tuning run.
        built: see `built_of`.
        rescoring: names and paths of the models that rescore its lists.
        weights: the name of the file of the weights that put rescored lists in order; None without
            such models.
        list_size: translations of a list.
        tuned: on what, and how good it was there.
    """
    base, home = directory.resolve(), _home(directory, built).resolve()

    def placed(path: str | Path) -> str:
        real = Path(path).resolve()
        return os.path.relpath(real, base) if real.is_relative_to(home) else str(real)

    ini = MosesIni.read(directory / INI)
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "ini": INI,
        "built": None if built is None else placed(built),
        "rescoring": [[name, with_path(model, placed)] for name, model in rescoring],
        "weights": weights,
        "list_size": list_size,
        "tuned": tuned,
    }
    write_json(directory / SYSTEM, content)  # before the ini, whose paths it makes relative
    content["external"] = write_relative_ini(directory, ini, built)
    write_json(directory / SYSTEM, content)
