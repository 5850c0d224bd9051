"""An object in its own process, whose methods are called from here.

`multiprocessing` is not used: its processes import everything that the main one did, and prefer
modules of the current directory to those of the standard library. The process ends with the one
that started it, however that ends. It ignores signals, which are meant for the latter only.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from moses_feature.runtime.errors import LostProcessError, MosesFeatureError

Result = TypeVar("Result")

ROOT = Path(__file__).parents[2]
PROGRAM = "from moses_feature.runtime.processes import serve; serve({}, {})"
SECONDS_BETWEEN_REPORTS = 0.5


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ObjectProcess:
    """An object in a process of its own.

    Args:
        make: makes the object there; it must be picklable.
        what: the name of the process, for the error if it is lost.
    """

    def __init__(self, make: Callable[[], Any], what: str) -> None:
        self._what = what
        self._connection, theirs = Pipe()
        alive, self._alive = os.pipe()  # never written to: it is closed when this process ends
        search_path = [path for path in sys.path if path]  # not the current directory
        try:
            self._process = subprocess.Popen(  # noqa: S603  # this very program
                [sys.executable, "-P", "-c", PROGRAM.format(theirs.fileno(), alive)],
                pass_fds=[theirs.fileno(), alive],
                env={**os.environ, "PYTHONPATH": os.pathsep.join([*search_path, str(ROOT)])},
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C does not reach it
            )
        finally:
            theirs.close()
            os.close(alive)
        self._thread = ThreadPoolExecutor(1)  # sends and receives, so that neither side blocks
        self.ready: Future[None] = self._thread.submit(self._call, make)
        """Raises what `make` raises."""

    def is_ready(self) -> bool:
        """Return whether the object is made; raises what `make` raises."""
        if not self.ready.done():
            return False
        self.ready.result()
        return True

    def call(
        self,
        method: Callable[..., Result],
        *arguments: Any,
        report: Callable[[Any], None] | None = None,
    ) -> Future[Result]:
        """Call a method of the object, given as an attribute of its class.

        Args:
            method: its name is called there.
            arguments: arguments of the method.
            report: called from time to time with the sum of the numbers that the method reports.

        Returns:
            The future of the result; it raises the error of the method, or `LostProcessError`.
        """
        reports = report is not None
        return self._thread.submit(self._call, (method.__name__, arguments, reports), report)

    def _call(self, request: Any, report: Callable[[Any], None] | None = None) -> Any:
        try:
            _send(self._connection, request)
            while True:
                kind, content = self._connection.recv()
                if kind != "report":
                    break
                if report is not None:
                    report(content)
        except (EOFError, OSError):
            code = self._process.wait()
            raise LostProcessError(
                f"{self._what} ended without a word, exit code {code} (negative: killed by this "
                "signal, 9 often for want of memory)"
            ) from None
        if kind == "error":
            raise content
        return content

    def close(self) -> None:
        """End the process, even if it is at work."""
        self._process.kill()
        self._process.wait()
        self._thread.shutdown(cancel_futures=True)
        self._connection.close()
        os.close(self._alive)


def serve(descriptor: int, alive: int) -> None:
    """Make an object and call its methods, as requested over a connection."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    gc.disable()  # many small objects, no cycles
    connection: Connection[Any, Any] = Connection(descriptor)
    try:
        made = _answer(connection.recv())
        is_error = isinstance(made, MosesFeatureError)
        _send(connection, ("error", made) if is_error else ("done", None))
        while True:
            method, arguments, reports = connection.recv()
            options = {"report": _Reporter(connection)} if reports else {}
            answer = _answer(getattr(made, method), *arguments, **options)
            is_error = isinstance(answer, MosesFeatureError)
            _send(connection, ("error" if is_error else "done", answer))
    except (EOFError, ConnectionError):
        return


def _send(connection: Connection[Any, Any], message: Any) -> None:
    """Send a message, as bytes: `Connection.send` leaves a buffer open if the other end is lost."""
    connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def _answer(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except MosesFeatureError as error:
        return error
    except OSError as error:
        return MosesFeatureError(f"{error.filename or 'a file'}: {error.strerror or error}")


def _end_with(alive: int) -> None:
    """End this process when the other end of a pipe is closed."""
    os.read(alive, 1)
    os._exit(1)


class _Reporter:
    """Reports progress from time to time."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        self._done: float = 0
        self._last = time.monotonic()

    def __call__(self, done: float) -> None:
        self._done += done
        if time.monotonic() - self._last > SECONDS_BETWEEN_REPORTS:
            _send(self._connection, ("report", self._done))
            self._done = 0
            self._last = time.monotonic()


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
