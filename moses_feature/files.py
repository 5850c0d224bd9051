"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moses_feature.errors import MosesFeatureError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path` to write to, and rename it when the block succeeds.

    Raises:
        MosesFeatureError: the file cannot be written (a full disk, no permission).
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise MosesFeatureError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file so that it appears whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
