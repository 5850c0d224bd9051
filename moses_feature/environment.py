"""What must be said to numeric libraries before they are loaded."""

from __future__ import annotations

import os

QUIET_THREADS = {
    # torch's threads wait for work by spinning, for so long that two busy processes on the same
    # cores slow each other down many times over.
    "GOMP_SPINCOUNT": "1000",
}
ONE_THREAD_A_PRODUCT = {
    # The products of a decoder are too small to be shared among threads, which would only wait
    # for each other.
    "OPENBLAS_NUM_THREADS": "1",
}


def quiet_threads() -> None:
    """Set what makes torch's threads good neighbours, unless the user has set it."""
    os.environ.update(_unless_set(QUIET_THREADS))


def one_thread_a_product() -> None:
    """Set what keeps numpy's products in one thread, unless the user has set it."""
    os.environ.update(_unless_set(ONE_THREAD_A_PRODUCT))


def of_workers() -> dict[str, str]:
    """Return both, as the environment of processes that are started on other machines."""
    return _unless_set({**QUIET_THREADS, **ONE_THREAD_A_PRODUCT})


def _unless_set(variables: dict[str, str]) -> dict[str, str]:
    return {name: os.environ.get(name, value) for name, value in variables.items()}
