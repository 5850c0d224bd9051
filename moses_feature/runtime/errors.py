"""The errors of a user's data or command, and how they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class MosesFeatureError(Exception):
    """Bad data, an unusable file, or a run that cannot continue. Exit code 1."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the class and the message, to pass through pipes between processes."""
        return _again, (type(self), str(self))


class UsageError(MosesFeatureError):
    """Invalid options or a contradiction between them. Exit code 2."""

    exit_code = 2


class OutputError(MosesFeatureError):
    """A file cannot be written: a full disk, no permission."""


class LockedError(OutputError):
    """Another run is writing the same directory."""


class LostProcessError(MosesFeatureError):
    """A process that did a part of the work ended before it was done."""


class DataError(MosesFeatureError):
    """The data are bad: the same input will be refused again."""


class FormatError(DataError):
    """Data that are not in the expected format.

    The message names the file, the line (1-based, if there is one), what was expected and what was
    found.
    """

    def __init__(
        self, path: str | Path, expected: str, found: str, line_number: int | None = None
    ) -> None:
        at_line = f" at line {line_number}" if line_number is not None else ""
        super().__init__(f"{path}{at_line}: expected {expected}, found {found}")


def install(extra: str) -> str:
    """Return how to install the packages of an extra, as the README installs this one."""
    return f"in the checkout, pip install -c constraints.txt '.[{extra}]'"


def shown(content: bytes, limit: int = 60) -> str:
    """Return bytes as text for an error message, cut to `limit` characters."""
    text = repr(content.decode("utf-8", errors="backslashreplace"))
    return text if len(text) <= limit else f"{text[:limit]}…"


def printable(text: str) -> str:
    """Return a text without characters that move the cursor or change colours of a terminal."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
        for character in text
    )


def _again(kind: type[MosesFeatureError], message: str) -> MosesFeatureError:
    """Make an error from a class and a message, without the class's own constructor."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    return error
