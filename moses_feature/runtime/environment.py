"""Settings that numeric libraries need before they are loaded, and settings of the C library."""

from __future__ import annotations

import ctypes
import os
import sys
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


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's `malloc.h`
_LARGEST = 1 << 30


def keep_freed_memory() -> None:
    """Keep freed memory for later use instead of returning it to the system.

    Returned memory costs a page fault for each page when it is used again: up to a tenth of the
    time of a run that allocates tens of megabytes at a time. Does nothing unless the C library is
    glibc.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):
            library.mallopt(_MMAP_THRESHOLD, _LARGEST)
            library.mallopt(_TRIM_THRESHOLD, _LARGEST)


_CPUINFO = Path("/proc/cpuinfo")
_BFLOAT16 = {"avx512_bf16", "amx_bf16"}


def multiplies_bfloat16() -> bool:
    """Return whether Linux names instructions of the processor that multiply bfloat16 numbers."""
    return _CPUINFO.exists() and not _BFLOAT16.isdisjoint(_CPUINFO.read_text().split())
