"""The start of each command: a quiet end at Ctrl-C from the first moment. Light to import."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pkgutil import resolve_name
from typing import Any

INTERRUPTED, TERMINATED = 130, 143


@contextmanager
def loading() -> Iterator[None]:
    """Let Ctrl-C end the process at once while modules are loaded.

    The import system drops exceptions that are raised while it releases a lock.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, say
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def start(place: str, **options: Any) -> None:
    """Load a command and run it.

    Args:
        place: MODULE:NAME of the command.
        options: of the command, to click.
    """
    with loading():
        command = resolve_name(place)
    command(**options)


main = partial(start, "moses_feature.cli.main:moses_feature")
augment = partial(start, "moses_feature.cli.tables.augment:augment_phrase_table")
compare = partial(start, "moses_feature.cli.tuning.compare:mert_compare")
decode = partial(start, "moses_feature.cli.tuning.decode:mert_decode")
optimize = partial(start, "moses_feature.cli.tuning.optimise:mert_optimize")
tune = partial(start, "moses_feature.cli.tuning.tune:mert_tune")
