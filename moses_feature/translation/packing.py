"""A system in one file, to translate with elsewhere.

A tar archive of one folder: the ini, `system.json`, and all files that they name, in `files/`.
Paths in it are relative to the folder.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

from moses_feature.build.preparation import preparation_of
from moses_feature.moses.nbest_lists import with_path
from moses_feature.moses.system_directory import INI, SYSTEM, WHAT, SystemDirectory
from moses_feature.networks.files import CHECKPOINT
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import Json, whole_file, with_or_without_gz
from moses_feature.runtime.json_files import read_json

FILES, BUILT = "files", "built"
FOLDER = re.compile(r"\w[\w.+-]*")
FEATURES = ".features.json"
"""What stands beside an augmented table and belongs to it."""


class Packer:
    """Puts a system together.

    Args:
        directory: the system; see `SystemDirectory`.

    Attributes:
        members: the files of the archive and their sources: a path, or content.

    Raises:
        MosesFeatureError: a file is missing.
    """

    def __init__(self, directory: Path) -> None:
        self._of = SystemDirectory.read(directory)
        self.members: dict[str, Path | bytes] = {}
        self._names: dict[Path, str] = {}
        ini = self._of.moses_ini()
        if not ini.features:
            raise MosesFeatureError(f"{self._of.ini}: expected a moses.ini, found no feature in it")
        new = {path: self._add(with_or_without_gz(path)) for path in sorted(ini.named_files())}
        self.members[INI] = ini.with_files(new).content()
        self.members[SYSTEM] = (json.dumps(self._facts(directory), indent=1) + "\n").encode()

    def _add(self, path: Path) -> str:
        """Add a file or a folder; return its name in the archive, for a link that of the link."""
        named, path = path, path.resolve()
        if path in self._names:
            return self._names[path]
        if not path.exists():
            raise MosesFeatureError(f"{path}: expected a file of the system, found none")
        taken = set(self._names.values())
        short = named.name if named.is_symlink() else path.name
        name = f"{FILES}/{short}"
        number = 1
        while name in taken:
            number += 1
            name = f"{FILES}/{number}-{short}"
        self._names[path] = name
        if path.is_dir():
            found = sorted(of for of in path.rglob("*") if of.is_file() and of.name != CHECKPOINT)
            if not found:
                raise MosesFeatureError(f"{path}: expected files of the system, found none")
            for file in found:
                self.members[f"{name}/{file.relative_to(path)}"] = file
            return name
        self.members[name] = path
        beside = named.with_name(named.name + FEATURES)
        if beside.is_file():
            self.members[name + FEATURES] = beside
        return name

    def _facts(self, directory: Path) -> Json:
        """Return the content of the new `system.json`."""
        facts = directory / SYSTEM
        content: Json = {"format_version": 1, "tuned": None}
        if facts.is_file():
            content |= read_json(facts, WHAT)
        content |= {
            "ini": INI,
            "packed": True,
            "built": self._add_built(),
            "rescoring": [
                [name, with_path(model, lambda path: self._add(Path(path)))]
                for name, model in self._of.rescoring
            ],
            "weights": None,
            "list_size": self._of.list_size,
        }
        if self._of.weights is not None:
            content["weights"] = self._add(self._of.weights)
        return content

    def _add_built(self) -> str | None:
        """Add what is needed of the system of `system build`, to prepare text as it did."""
        built = self._of.built
        if built is None:
            return None
        if not (built / SYSTEM).is_file():
            raise MosesFeatureError(
                f"{built}: expected the system that this one was tuned from, found none"
            )
        content = read_json(built / SYSTEM, WHAT)
        self.members[f"{BUILT}/{SYSTEM}"] = built / SYSTEM
        for side in ("source", "target"):
            try:
                truecaser = preparation_of(content, side, built).truecaser
            except MosesFeatureError:  # it was built of tokens
                continue
            if truecaser is not None:
                self.members[f"{BUILT}/{Path(truecaser).relative_to(built)}"] = Path(truecaser)
        return BUILT


def pack(
    directory: Path, output: Path, report: Callable[[str], None] = lambda _: None
) -> dict[str, int]:
    """Write an archive; return the bytes of each member.

    Args:
        directory: the system: a directory, or a moses.ini.
        output: the archive, whose name without `.tar` is that of its folder.
        report: called with the name of each member.

    Raises:
        UsageError: the name of the archive would not do for a folder.
        MosesFeatureError: a file is missing.
        OutputError: the archive cannot be written.
    """
    packer = Packer(directory)
    folder = output.name.removesuffix(".tar")
    if not FOLDER.fullmatch(folder):
        raise UsageError(
            f"expected a name of letters, digits, - _ or . before .tar, found {folder}"
        )
    sizes = {}
    with whole_file(output) as temporary, tarfile.open(temporary, "w") as archive:
        for name, source in sorted(packer.members.items()):
            report(name)
            entry = tarfile.TarInfo(f"{folder}/{name}")
            content = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
            with content as file:
                entry.size = file.seek(0, io.SEEK_END)
                file.seek(0)
                archive.addfile(entry, file)
            sizes[name] = entry.size
    return sizes
