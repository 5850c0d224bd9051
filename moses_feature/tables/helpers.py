"""Light processes that pack parts of a table, and append the columns, while another one scores.

They import neither torch nor the commands: they start in a fraction of a second, and each takes
little more memory than the parts that it works on.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar

from moses_feature.errors import LostProcessError, MosesFeatureError
from moses_feature.tables.columns import NewColumns

Result = TypeVar("Result")

PROGRAM = "from moses_feature.tables.helpers import serve; serve({})"


class Helper(Protocol):
    """Calls methods of `NewColumns`, one after the other, in the order of the calls."""

    def call(self, method: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call a method of `NewColumns`, given as an attribute of the class."""

    def close(self) -> None:
        """End it."""


class HelperHere:
    """A helper in this process, for tables that are not worth another one."""

    def __init__(self, columns: NewColumns) -> None:
        self._columns = columns

    def call(self, method: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the method at once."""
        future: Future[Result] = Future()
        try:
            future.set_result(method(self._columns, *arguments))
        except MosesFeatureError as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """There is nothing to end."""


class HelperProcess:
    """A helper in a process of its own.

    It is not started with `multiprocessing`, whose processes import what the main one did.
    """

    def __init__(self, columns: NewColumns) -> None:
        self._connection, theirs = Pipe()
        search_path = os.pathsep.join(path or "." for path in sys.path)
        self._process = subprocess.Popen(  # noqa: S603  # this very program
            [sys.executable, "-P", "-c", PROGRAM.format(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": search_path},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._connection.send(columns)
        self._thread = ThreadPoolExecutor(1)  # sends and receives, so that neither side waits

    def call(self, method: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the method there; the future raises what it raises, or `LostProcessError`."""
        return self._thread.submit(self._call, method.__name__, *arguments)

    def _call(self, *request: Any) -> Any:
        try:
            self._connection.send(request)
            answer = self._connection.recv()
        except (EOFError, OSError):
            code = self._process.wait()
            raise LostProcessError(
                f"a helper process ended without a word, exit code {code} (negative: killed by "
                "this signal, 9 often for want of memory)"
            ) from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.terminate()
        self._process.wait()
        self._thread.shutdown(cancel_futures=True)
        self._connection.close()


def serve(descriptor: int) -> None:
    """Serve calls of the methods of an object, which comes first, until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that scores
    gc.disable()  # many small objects, no cycles
    connection: Connection[Any, Any] = Connection(descriptor)
    try:
        columns = connection.recv()
        while True:
            method, *arguments = connection.recv()
            connection.send(_answer(getattr(columns, method), arguments))
    except (EOFError, ConnectionError):
        return


def _answer(method: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return method(*arguments)
    except MosesFeatureError as error:
        return error
