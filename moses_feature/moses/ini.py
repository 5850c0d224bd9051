"""Read and change moses.ini, and refuse what Moses would refuse.

Follows `moses/Parameter.cpp` (sections, `#` comments), `moses/FF/FeatureFunction.cpp` (feature
lines) and `moses/StaticData.cpp` (weights must belong to features). Everything that is not
changed stays as it was, byte for byte.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from moses_feature.moses.ini_features import (
    FALSE,
    FILE_KEYS,
    SINGLE_SCORES,
    TABLE_CLASS,
    TABLE_KEYS,
    TRUE,
    Feature,
    Weights,
)
from moses_feature.moses.phrase_table import NUMBER
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError, shown
from moses_feature.runtime.files import with_or_without_gz, write_whole

SYSTEM = "system.json"
"""The file that makes a folder a system: an ini beside it names files from there."""
OLD_SECTIONS = frozenset(("ttable-file", "lmodel-file", "weight-t", "weight-d", "weight-l"))
"""Sections of the format before 2013."""
_NAME = re.compile(r"[A-Za-z][0-9A-Za-z]*")
_SECTION = re.compile(rb"\[([^\]]*)\]")


class MosesIni:
    """A moses.ini.

    Attributes:
        path: the file.
        features: the feature functions, in order.
        weights: the weights by the name of their feature.
        settings: the lines of all other sections, by the section's name.

    Args:
        path: the file.
        content: its content.
        faults: if given, bad lines are left out, and their errors are appended here.

    Raises:
        FormatError: a line that Moses would refuse, with its number; not if `faults` is given.
    """

    def __init__(self, path: Path, content: bytes, faults: list[FormatError] | None = None) -> None:
        self.path = path
        self._faults = faults
        self.features: list[Feature] = []
        self.weights: dict[str, Weights] = {}
        self.settings: dict[str, list[str]] = {}
        self._lines = content.split(b"\n")
        self._parse()
        self._check_weights()

    @classmethod
    def read(cls, path: str | Path, faults: list[FormatError] | None = None) -> MosesIni:
        """Read a file.

        Beside a `system.json`, relative paths are those from the folder of the ini, and become
        absolute. Elsewhere they mean what Moses takes them for: paths from the working directory.

        Raises:
            MosesFeatureError: it cannot be read; and as the class does.
        """
        path = Path(path)
        try:
            ini = cls(path, path.read_bytes(), faults)
            is_of_system = (path.parent / SYSTEM).is_file()
            folder = path.parent.resolve()
        except OSError as error:
            raise MosesFeatureError(f"{path}: {error.strerror}") from error
        named = {name for name in ini.named_files() if not Path(name).is_absolute()}
        if not is_of_system or not named:
            return ini
        files = {name: moses_path(Path(os.path.normpath(folder / name))) for name in named}
        return cls(path, ini.with_files(files).content(), None if faults is None else [])

    @contextmanager
    def _noting_faults(self) -> Iterator[None]:
        """Note the error of a line instead of raising it, if that is wanted."""
        try:
            yield
        except FormatError as error:
            if self._faults is None:
                raise
            self._faults.append(error)

    def check_names(self) -> None:
        """Check that `mert-moses.pl` can parse the names of the features; Moses itself allows more.

        Raises:
            FormatError: a name that is not a letter followed by letters and digits.
        """
        for feature in self.features:
            with self._noting_faults():
                if not _NAME.fullmatch(feature.name):
                    raise self.error(
                        feature.line_number,
                        "a feature name of letters and digits (else mert-moses.pl fails)",
                        repr(feature.name),
                    )

    def content(self) -> bytes:
        """Return the current content of the file."""
        return b"\n".join(self._lines)

    def files(self) -> list[Path]:
        """Return the files that its features name."""
        values = (value for feature in self.features for value in feature.arguments.values())
        return [with_or_without_gz(value) for value in values if value]

    def write(self, path: Path) -> None:
        """Write the current content to a file."""
        write_whole(path, self.content())

    def tables(self) -> list[Feature]:
        """Return the phrase tables."""
        return [feature for feature in self.features if feature.is_table]

    def table(self, name: str | None = None) -> Feature:
        """Return the phrase table of that name, or the only one.

        Raises:
            UsageError: there is no such table, or there are several and no name is given.
        """
        tables = self.tables()
        names = ", ".join(table.name for table in tables) or "none"
        if name is None:
            if len(tables) != 1:
                raise UsageError(
                    f"{self.path}: expected one phrase table, found {names}: choose one by name"
                )
            return tables[0]
        for table in tables:
            if table.name == name:
                return table
        raise UsageError(f"{self.path}: no phrase table {name!r}, only {names}")

    def with_scores(
        self, table: Feature, path: Path, weights: Sequence[float], *, binary: bool = False
    ) -> MosesIni:
        """Return an ini in which a phrase table is another file with more scores.

        Args:
            table: one of `tables()`.
            path: the new file, in the format that the table has in the ini.
            weights: start weights of the added scores; a score of weight 0 is not tuned and has no
                effect.
            binary: whether `path` is in a binary format.

        Raises:
            MosesFeatureError: only one of `path` and the table is in a binary format, the table has
                no weights, or Moses could not read the path.
        """
        count = table.score_count + len(weights)
        if binary == (table.kind == TABLE_CLASS):
            raise self.error(
                table.line_number,
                "a table in a binary format" if binary else f"a text table ({TABLE_CLASS})",
                table.kind
                if binary
                else f"{table.kind}: binarise the augmented table with {count} scores, and give "
                "--binary-path, too",
            )
        if table.name not in self.weights:
            raise self.error(table.line_number, f"weights for {table.name}", "none in [weight]")
        absolute = moses_path(path)
        changes = {"num-features": str(count), "path": absolute}
        before = table.arguments.get("tuneable-components")
        if before is not None or not all(weights):
            known = before or ",".join(["true"] * table.score_count)
            new = ["true" if weight else "false" for weight in weights]
            changes["tuneable-components"] = ",".join([known, *new])
        lines = self._lines.copy()
        feature_line, weight_line = table.line_number - 1, self.weights[table.name].line_number - 1
        for key, value in changes.items():
            if key in table.arguments:
                lines[feature_line] = _with_argument(lines[feature_line], key, value)
            else:
                lines[feature_line] = _appended(lines[feature_line], f" {key}={value}")
        lines[weight_line] = _appended(lines[weight_line], "".join(f" {w:g}" for w in weights))
        return MosesIni(self.path, b"\n".join(lines))

    def weights_by_name(self) -> dict[str, tuple[float, ...]]:
        """Return the weights of the features that have some."""
        return {name: tuple(weights.values) for name, weights in self.weights.items()}

    def with_feature(self, line: str, name: str, weights: Sequence[float]) -> MosesIni:
        """Return an ini with one more feature function, behind the existing ones.

        Args:
            line: its line of the [feature] section, with `name=`.
            name: the name of the feature.
            weights: the weights of its values.

        Raises:
            FormatError: there is a feature of this name.
            MosesFeatureError: the ini has no [feature] or no [weight] lines to put it behind.
        """
        if not self.features or not self.weights:
            raise MosesFeatureError(f"{self.path}: expected features and weights, found none")
        values = " ".join(f"{weight:g}" for weight in weights)
        new = {
            max(feature.line_number for feature in self.features): line,
            max(weight.line_number for weight in self.weights.values()): f"{name}= {values}",
        }
        lines = []
        for number, old in enumerate(self._lines, 1):
            lines.append(old)
            if number in new:
                end = b"\r" if old.endswith(b"\r") else b""
                lines.append(new[number].encode(errors="surrogateescape") + end)
        return MosesIni(self.path, b"\n".join(lines))

    def with_weights(
        self, weights: Mapping[str, Sequence[float]], comments: Sequence[str] = ()
    ) -> MosesIni:
        """Return an ini with other weights, six significant digits; all else stays.

        Args:
            weights: by the name of their feature; features not named keep theirs, and features
                without weights in the ini get none.
            comments: lines to put at the top.
        """
        lines = self._lines.copy()
        for name, values in weights.items():
            if name in self.weights:
                number = self.weights[name].line_number - 1
                text = f"{name}= {' '.join(f'{value:.6g}' for value in values)}"
                lines[number] = text.encode(errors="surrogateescape")
        top = [
            f"# {' '.join(comment.split())}".encode(errors="surrogateescape")
            for comment in comments
        ]
        return MosesIni(self.path, b"\n".join([*top, *lines]))

    def named_files(self) -> set[str]:
        """Return the files and folders that its features name, as the ini has them."""
        return {
            value
            for feature in self.features
            for key, value in feature.arguments.items()
            if key in FILE_KEYS
        }

    def relative_to(self, folder: Path, home: Path) -> MosesIni:
        """Return an ini for a folder with a `system.json`: it names the files of `home` by there.

        Args:
            folder: where the ini is written.
            home: the folder whose files are named relative to the ini; others keep their paths.
        """
        base, home = folder.resolve(), home.resolve()
        real = {name: Path(name).parent.resolve() / Path(name).name for name in self.named_files()}
        files = {
            name: os.path.relpath(path, base)
            for name, path in real.items()
            if path.is_relative_to(home)
        }
        return self.with_files(files)

    def with_files(self, files: Mapping[str, str]) -> MosesIni:
        """Return an ini whose features read other files, given by those that they name."""
        lines = self._lines.copy()
        for feature in self.features:
            number = feature.line_number - 1
            for key, value in feature.arguments.items():
                if key in FILE_KEYS and value in files:
                    lines[number] = _with_argument(lines[number], key, files[value])
        return MosesIni(self.path, b"\n".join(lines), None if self._faults is None else [])

    def _parse(self) -> None:
        section = ""
        for line_number, line in enumerate(self._lines, 1):
            raw = line.partition(b"#")[0].strip(b" \t\r")
            text = raw.decode("utf-8", errors="surrogateescape")
            if not text:
                continue
            if heading := _SECTION.match(raw):
                section = heading[1].decode("utf-8", errors="surrogateescape")
            with self._noting_faults():
                if heading:
                    self._check_section(section, line_number)
                elif section == "feature":
                    self._add_feature(text, line_number)
                elif section == "weight":
                    self._add_weights(text, line_number)
                else:
                    self.settings.setdefault(section, []).append(text)

    def _check_section(self, section: str, line_number: int) -> None:
        if section in OLD_SECTIONS:
            raise self.error(
                line_number,
                "a moses.ini with [feature] and [weight]",
                f"[{section}] of the old format: Moses' convert-moses-ini-to-v2.perl converts it",
            )

    def _add_feature(self, text: str, line_number: int) -> None:
        kind, *pieces = re.split("[ \t]+", text)
        arguments: dict[str, str] = {}
        for piece in pieces:
            key, equals, value = piece.partition("=")
            if not (equals and value):
                raise self.error(line_number, "key=value", _shown(piece))
            if key in arguments:
                raise self.error(line_number, "each key once", f"{key} twice")
            arguments[key] = value
        name = arguments.pop("name", None)
        if name is None:
            same = [feature for feature in self.features if feature.kind == kind]
            name = f"{kind}{len(same)}"
        if any(feature.name == name for feature in self.features):
            raise self.error(line_number, "each feature name once", f"{name} twice")
        feature = Feature(line_number, kind, name, arguments)
        self._check_arguments(feature)
        self.features.append(feature)

    def _check_arguments(self, feature: Feature) -> None:
        line_number, arguments = feature.line_number, feature.arguments
        count = arguments.get("num-features", "1")
        if not re.fullmatch(r"[0-9]{1,6}", count):
            raise self.error(line_number, "num-features: a number", repr(count))
        if feature.kind == TABLE_CLASS:
            unknown = sorted(set(arguments) - TABLE_KEYS)
            if unknown:
                raise self.error(line_number, f"keys of {TABLE_CLASS}", ", ".join(unknown))
        if feature.is_table:
            combined = "components" in arguments  # PhraseDictionaryMultiModel combines other tables
            for key in ("num-features",) if combined else ("num-features", "path"):
                if key not in arguments:
                    raise self.error(line_number, f"{key}=… for {feature.name}", "none")
        self._check_tuneable(feature)

    def _check_tuneable(self, feature: Feature) -> None:
        line_number, arguments = feature.line_number, feature.arguments
        said = arguments.get("tuneable", "true")
        if said.lower() not in (*TRUE, *FALSE):
            raise self.error(line_number, "tuneable=true or false", _shown(said))
        components = arguments.get("tuneable-components")
        if components is None:
            return
        if not feature.is_tuneable:
            raise self.error(line_number, "tuneable-components or tuneable=false", "both of them")
        values = components.lower().split(",")
        if len(values) != feature.score_count or not {*TRUE, *FALSE}.issuperset(values):
            raise self.error(
                line_number,
                f"{feature.score_count} tuneable-components, true or false, as num-features says",
                _shown(components),
            )

    def _add_weights(self, text: str, line_number: int) -> None:
        name, equals, rest = text.partition("=")
        if not equals or " " in name or rest[:1] not in (" ", "\t"):
            raise self.error(line_number, "a line like Name= 0.2 0.2", _shown(text))
        if name in self.weights:
            raise self.error(line_number, "the weights of each feature once", f"{name} twice")
        written = rest.encode(errors="surrogateescape").split()
        values = tuple(float(value) for value in written if NUMBER.fullmatch(value))
        if len(values) != len(written) or not all(map(math.isfinite, values)) or not values:
            raise self.error(line_number, "weights (finite numbers)", _shown(rest.strip()))
        self.weights[name] = Weights(line_number, values)

    def _check_weights(self) -> None:
        """Check that weights and features match; either section may come first."""
        by_name = {feature.name: feature for feature in self.features}
        for name, weights in self.weights.items():
            with self._noting_faults():
                if name not in by_name:
                    raise self.error(weights.line_number, "the name of a feature", repr(name))
                feature = by_name[name]
                counted = "num-features" in feature.arguments or feature.kind in SINGLE_SCORES
                if counted and len(weights.values) != feature.score_count:
                    raise self.error(
                        weights.line_number,
                        f"{feature.score_count} weights for {name} of line {feature.line_number}",
                        str(len(weights.values)),
                    )

    def error(self, line_number: int, expected: str, found: str) -> FormatError:
        """Return an error about a line."""
        return FormatError(self.path, expected, found, line_number)


def moses_path(path: Path) -> str:
    """Return a path as an ini needs it: absolute.

    Raises:
        MosesFeatureError: Moses could not read the path.
    """
    absolute = str(path.absolute())
    if re.search(r"[#\s]", absolute):
        raise MosesFeatureError(
            f"{absolute}: Moses cannot read a path with white space or # from its ini"
        )
    return absolute


def _shown(text: str) -> str:
    return shown(text.encode(errors="surrogateescape"))


def _with_argument(line: bytes, key: str, value: str) -> bytes:
    pattern = rb"(?<=[ \t])%b=[^ \t\r#]*" % re.escape(key.encode())
    argument = f"{key}={value}".encode(errors="surrogateescape")
    return re.sub(pattern, lambda _: argument, line, count=1)


def _appended(line: bytes, more: str) -> bytes:
    text = line.partition(b"#")[0].rstrip(b" \t\r")
    return text + more.encode(errors="surrogateescape") + line[len(text) :]
