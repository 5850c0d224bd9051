"""Where the commands begin: numpy's threads are said before it is loaded."""

from __future__ import annotations

from moses_feature.cli.start import start
from moses_feature.environment import one_thread_a_product


def compare() -> None:
    """Run `mert-compare`."""
    start("mert.cli.compare:mert_compare", one_thread_a_product)


def decode() -> None:
    """Run `mert-decode`."""
    start("mert.cli.decode:mert_decode", one_thread_a_product)


def optimize() -> None:
    """Run `mert-optimize`."""
    start("mert.cli.optimise:mert_optimize", one_thread_a_product)


def tune() -> None:
    """Run `mert-tune`."""
    start("mert.cli.tune:mert_tune", one_thread_a_product)
