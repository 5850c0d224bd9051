"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moses_feature.errors import OutputError

_UMASK = os.umask(0o022)
os.umask(_UMASK)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path` to write to, and rename it when the block succeeds.

    Raises:
        OutputError: the file cannot be written (a full disk, no permission).
    """
    if not path.name or path.is_dir():
        raise OutputError(f"{path}: expected a file name, found a directory")
    path = path.resolve() if path.is_symlink() else path
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.chmod(0o666 & ~_UMASK)  # some writers make files that others cannot read
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file so that it appears whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object, indented, so that it appears whole or not at all."""
    write_whole(path, json.dumps(content, indent=2).encode() + b"\n")
