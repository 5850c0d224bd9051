"""The entry points of the commands: they set numpy's threads before numpy is loaded."""

from __future__ import annotations

from moses_feature.cli.common.start import start
from moses_feature.runtime.environment import quiet_threads


def compare() -> None:
    """Run `mert-compare`."""
    start("mert.cli.compare:mert_compare", quiet_threads)


def decode() -> None:
    """Run `mert-decode`."""
    start("mert.cli.decode:mert_decode", quiet_threads)


def optimize() -> None:
    """Run `mert-optimize`."""
    start("mert.cli.optimise:mert_optimize", quiet_threads)


def tune() -> None:
    """Run `mert-tune`."""
    start("mert.cli.tune:mert_tune", quiet_threads)
