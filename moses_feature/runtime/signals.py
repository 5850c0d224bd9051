"""Signals wait while compiled code runs.

Python handles a signal in the main thread as soon as that runs bytecode again, which may be in a
call from compiled code back into Python. An exception cannot pass through compiled code: a Ctrl-C
there would be lost, and could leave a wrong number or a broken stack behind. Therefore a handler
that only records signals is installed during the call, and the signals are raised after it.
"""

from __future__ import annotations

import _signal  # the module behind `signal`: ten times faster
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
    """Call a function; signals that arrive meanwhile are handled when it has returned.

    Nested calls are covered by the outermost one. In other threads than the main one, where Python
    handles no signals, the function is simply called.
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
            if callable(handler):  # else the signal is ignored, or ends the process without Python
                before[number] = handler
                _signal.signal(number, lambda number, _: came.append(number))
        return call(*arguments, **options)
    finally:
        _deferring = False
        for number, handler in before.items():
            _signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)
