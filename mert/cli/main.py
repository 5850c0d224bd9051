"""Where the commands begin: numpy's threads are said before it is loaded."""

from __future__ import annotations

from moses_feature.environment import one_thread_a_product


def compare() -> None:
    """Run `mert-compare`."""
    one_thread_a_product()
    from mert.cli.compare import mert_compare

    mert_compare()


def decode() -> None:
    """Run `mert-decode`."""
    one_thread_a_product()
    from mert.cli.decode import mert_decode

    mert_decode()


def optimize() -> None:
    """Run `mert-optimize`."""
    one_thread_a_product()
    from mert.cli.optimise import mert_optimize

    mert_optimize()


def tune() -> None:
    """Run `mert-tune`."""
    one_thread_a_product()
    from mert.cli.tune import mert_tune

    mert_tune()
