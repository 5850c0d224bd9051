"""Reading KenLM models safely."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import kenlm

from moses_feature.moses.lines import LineReader
from moses_feature.runtime.errors import DataError, MosesFeatureError

BINARY = b"mmap lm http://kheafield.com/code"
"""The first bytes of a binary model."""
LOG_10 = math.log(10.0)
"""KenLM's scores are logs to the base 10."""
_TRIAL = """
import kenlm, sys
config = kenlm.Config()
config.show_progress = False
config.load_method = kenlm.LoadMethod.LAZY
kenlm.Model(sys.argv[1], config).score("a b c d e f g")
"""


def load_kenlm(path: str | Path, *, lazy: bool = False) -> Any:
    """Read a model: binary, or ARPA, compressed or not.

    A binary file is mapped into memory unchecked, and a damaged one can crash the process, so it
    is first loaded in another process.

    Args:
        path: the model.
        lazy: read the parts of a binary model only when they are needed.

    Raises:
        MosesFeatureError: the file cannot be read, or is no model.
    """
    path = Path(path)
    if is_binary(path):
        tried = subprocess.run(  # noqa: S603  # our own program
            [sys.executable, "-P", "-c", _TRIAL, str(path)], capture_output=True, check=False
        )
        if tried.returncode < 0:
            raise DataError(f"{path}: expected a binary model of KenLM, found a damaged file")
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    if lazy:
        config.load_method = kenlm.LoadMethod.LAZY
    with _decompressed(path) as plain:
        try:
            return kenlm.Model(str(plain), config)
        except (OSError, RuntimeError, ValueError) as error:
            raise MosesFeatureError(
                f"{path}: expected a language model for KenLM: {_reason(error)}"
            ) from None


def _reason(error: Exception) -> str:
    """Return KenLM's error message, in one line."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError):  # its message would quote the file
        text = error.object.decode(errors="replace")
    return " ".join(text.split())[:600]


@contextmanager
def _decompressed(path: Path) -> Iterator[Path]:
    """Yield the path of a file, or of a temporary copy of it without its compression.

    KenLM's wheels are built without the libraries that decompress.

    Raises:
        MosesFeatureError: the file cannot be read.
        DataError: its compression is damaged.
    """
    with LineReader(path) as reader:
        if not reader.compressed:
            yield path
            return
        with NamedTemporaryFile(prefix="arpa-") as copy:
            for block in reader.blocks():
                copy.write(block)
            copy.flush()
            yield Path(copy.name)


def is_binary(path: Path) -> bool:
    """Return whether a file begins like a binary model.

    Raises:
        MosesFeatureError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(len(BINARY)) == BINARY
    except OSError as error:
        raise MosesFeatureError(f"{path}: {error.strerror}") from error
