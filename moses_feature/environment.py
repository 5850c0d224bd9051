"""What must be said to numeric libraries before they are loaded."""

from __future__ import annotations

import os

QUIET_THREADS = {
    # torch's threads wait for work by spinning, for so long that two busy processes on the same
    # cores slow each other down many times over.
    "GOMP_SPINCOUNT": "1000",
    # numpy's products here are too small to be shared among threads, which would only wait for
    # each other.
    "OPENBLAS_NUM_THREADS": "1",
}


def quiet_threads() -> None:
    """Set what makes threads good neighbours, unless the user has set it."""
    os.environ.update(of_workers())


def of_workers() -> dict[str, str]:
    """Return the same, as the environment of processes that are started on other machines."""
    return {name: os.environ.get(name, value) for name, value in QUIET_THREADS.items()}
