"""Settings that numeric libraries need before they are loaded."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLES = {
    # torch's threads spin while they wait for work, so long that two busy processes on the same
    # cores slow each other down many times over.
    "GOMP_SPINCOUNT": "1000",
    # numpy's products here are too small to be divided among threads, which would only wait for
    # each other.
    "OPENBLAS_NUM_THREADS": "1",
    # oneDNN, which multiplies bfloat16 numbers for torch, keeps compiled code for each size of its
    # products, 1,024 of them by default: hundreds of megabytes, where batches have many lengths.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128",
}


def set_variables() -> None:
    """Set the variables, unless the user has set them."""
    os.environ.update(of_workers())


def of_workers() -> dict[str, str]:
    """Return the same settings, for processes that are started on other machines."""
    return {name: os.environ.get(name, value) for name, value in VARIABLES.items()}


def cache_folder() -> Path:
    """Return the folder of this user for what can be made again; it may not exist.

    Raises:
        OSError: the user has no home.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "moses-feature"
    except RuntimeError as error:
        raise FileNotFoundError(f"{error} XDG_CACHE_HOME names another folder.") from error


_CPUINFO = Path("/proc/cpuinfo")
_BFLOAT16 = {"avx512_bf16", "amx_bf16"}


def multiplies_bfloat16() -> bool:
    """Return whether Linux names instructions of the processor that multiply bfloat16 numbers."""
    return _CPUINFO.exists() and not _BFLOAT16.isdisjoint(_CPUINFO.read_text().split())
