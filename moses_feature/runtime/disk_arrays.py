"""Long columns of numbers that need not fit in memory: files without a name, mapped into it."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

TOGETHER = 1 << 20
"""Values that are written in one go."""


class DiskArray:
    """Values that are appended, and then used as an array.

    All space is taken when they are appended, so that a full disk is an error there and then.

    Args:
        kind: of the values.
        folder: where they are kept, until nothing refers to them; None for memory.
    """

    def __init__(self, kind: DTypeLike, folder: Path | None) -> None:
        self._kind, self._folder = np.dtype(kind), folder
        self._file: IO[bytes] = BytesIO()
        if folder is not None:
            self._file = TemporaryFile(dir=folder)  # noqa: SIM115  # closed when nobody needs it

    def append(self, values: NDArray[Any]) -> None:
        """Append values.

        Raises:
            OSError: no space is left.
        """
        try:
            self._file.write(np.ascontiguousarray(values, self._kind).data)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise OSError(error.errno, error.strerror, str(self._folder)) from None

    def array(self) -> NDArray[Any]:
        """Return all values, (values,), which can be changed; none can be appended any more."""
        if isinstance(self._file, BytesIO):
            return np.frombuffer(self._file.getbuffer(), self._kind)
        with self._file:
            if not self._file.tell():
                return np.zeros(0, self._kind)
            return np.asarray(np.memmap(self._file, self._kind, "r+"))


def filled(value: float, size: int, kind: DTypeLike, folder: Path | None) -> NDArray[Any]:
    """Return a column of one value."""
    column = DiskArray(kind, folder)
    for first in range(0, size, TOGETHER):
        column.append(np.full(min(TOGETHER, size - first), value, kind))
    return column.array()
