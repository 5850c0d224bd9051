"""Signals that wait while compiled code runs.

Python handles a signal in the main thread as soon as that runs bytecode again: also in the middle
of compiled code, where that calls back into Python. An exception cannot pass through compiled code,
so that a Ctrl-C there would be lost, and leave a wrong number or a broken stack behind. Therefore a
handler that only takes note stands in for the duration of a call, and what came is raised after it.
"""

from __future__ import annotations

import _signal  # what `signal` wraps: ten times faster
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

DEFERRED = (int(signal.SIGINT), int(signal.SIGTERM))
_MAIN = threading.main_thread().ident
_deferring = False


def deferred(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Call a function; signals that come meanwhile are handled when it has returned.

    Calls within such a call are of one piece with it. In other threads than the main one, where
    Python handles no signals, the function is just called.
    """
    global _deferring
    if _deferring or threading.get_ident() != _MAIN:
        return call(*arguments, **options)
    came: list[int] = []
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    _deferring = True
    try:
        for number in DEFERRED:
            handler = _signal.getsignal(number)
            if callable(handler):  # else it is ignored, or ends the process without Python
                before[number] = handler
                _signal.signal(number, lambda number, _: came.append(number))
        return call(*arguments, **options)
    finally:
        _deferring = False
        for number, handler in before.items():
            _signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)
