"""How a command begins: what must be said to numeric libraries first, and quiet at Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

INTERRUPTED = 130


def start(place: str, prepare: Callable[[], None], **options: Any) -> None:
    """Load a command and run it.

    Args:
        place: MODULE:NAME of the command.
        prepare: is called before anything is loaded.
        options: of the command, to click.
    """
    module, _, name = place.partition(":")
    try:
        prepare()
        command = getattr(import_module(module), name)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    command(**options)
