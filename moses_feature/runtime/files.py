"""Files that appear whole or not at all, and the meaning of their suffixes."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError
from xopen import xopen

from moses_feature.runtime.errors import LockedError, OutputError

Json = dict[str, Any]
"""A JSON object."""

COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
STANDARD_STREAM = "-"
_TEMPORARY = re.compile(r"\.(.*)\.[0-9]+\.tmp")
LEFT_FOR = 24 * 3600.0
"""Seconds after which a temporary file was left by a run that was killed."""


def is_compressed(path: str | Path) -> bool:
    """Return whether a file is to be compressed, by its name."""
    return Path(path).suffix.lower() in COMPRESSION_SUFFIXES


def without_compression_suffix(path: str | Path) -> Path:
    """Return the path without `.gz`, `.bz2`, `.xz` or `.zst` at its end."""
    path = Path(path)
    return path.with_suffix("") if is_compressed(path) else path


def is_readable_file(path: str | Path) -> bool:
    """Return whether there is a file; False for an impossible name."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def with_or_without_gz(path: str | Path) -> Path:
    """Return the path of a file, with .gz if only that exists, like Moses."""
    plain, packed = Path(path), Path(f"{path}.gz")
    return packed if is_readable_file(packed) and not os.path.lexists(plain) else plain


def target_of(path: Path) -> Path:
    """Return the target of a path that is a link, else the path.

    Raises:
        OutputError: the link leads in a circle.
    """
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OutputError(f"{path}: expected a file, found a link that leads nowhere")
    return target


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename the file to `path` if the block succeeds.

    Raises:
        OutputError: the file cannot be written (a full disk, no permission).
    """
    if not path.name or path.is_dir():
        raise OutputError(f"{path}: expected a file name, found a directory")
    path = target_of(path)
    if path.exists() and not path.is_file():
        raise OutputError(f"{path}: expected a file name, found a special file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _remove_leftovers(path.parent, path.name)
        temporary.touch()
        permissions = stat.S_IMODE(temporary.stat().st_mode)
        yield temporary
        temporary.chmod(permissions)  # some writers make files that other users cannot read
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    except SafetensorError as error:
        raise OutputError(f"{path}: cannot be written: {error}") from error
    finally:
        with suppress(OSError):  # in a missing folder there is nothing to remove
            temporary.unlink()


@contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """Yield a new directory beside `directory`; it takes its place if the block succeeds.

    Raises:
        OutputError: there is a file of that name, or a directory that holds something, or it cannot
            be written.
    """
    target = target_of(directory.absolute())
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise OutputError(f"{directory}: expected a new or an empty directory")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        temporary.rename(target)
    except OSError as error:
        raise OutputError(f"{directory}: cannot be written: {error.strerror}") from error
    except OutputError as error:
        raise OutputError(f"{error}".replace(f"{temporary}", f"{directory}")) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def open_output(path: Path, level: int | None = None) -> Iterator[BinaryIO]:
    """Open a file that appears when it is complete, compressed according to its suffix.

    Args:
        path: the file.
        level: the level of the compression; None for a fast one.

    Raises:
        OutputError: the file cannot be written.
    """
    with whole_file(path) as temporary:
        if is_compressed(path):
            form = path.suffix.lower()[1:]
            opened = xopen(temporary, "wb", format=form, compresslevel=level, threads=0)
        else:
            opened = temporary.open("wb")
        with opened as file:
            yield file


@contextmanager
def locked_directory(directory: Path, doing: str) -> Iterator[None]:
    """Make a directory and lock it for this run; remove it if it stays empty.

    Args:
        directory: the directory.
        doing: the activity of a run there, for the message to other runs.

    Raises:
        OutputError: it cannot be made.
        LockedError: another run is at work there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise OutputError(f"{directory}: expected a directory: {reason}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(f"{directory}: another run is {doing} there") from None
        _remove_leftovers(directory)
        try:
            yield
        finally:  # only the holder of the lock may remove the directory
            if directory.is_dir() and not any(directory.iterdir()):
                directory.rmdir()
    finally:
        os.close(descriptor)


def _remove_leftovers(directory: Path, name: str | None = None) -> None:
    """Remove the temporary files of runs that were killed, as far as that is possible.

    Args:
        directory: where to look.
        name: of the file that they were to become; only those that nobody has written to for a
            day are removed. None for all files of a locked directory.
    """
    for path in directory.glob(f".{escape(name) if name else '*'}.*.tmp"):
        found = _TEMPORARY.fullmatch(path.name)
        if found is None or (name is not None and found[1] != name):
            continue
        with suppress(OSError):  # a folder, or a file of somebody else
            if name is None or time.time() - path.stat().st_mtime > LEFT_FOR:
                path.unlink()


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file so that it appears whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Json) -> None:
    """Write a JSON object, indented, so that it appears whole or not at all."""
    write_whole(path, json.dumps(content, indent=2).encode() + b"\n")
