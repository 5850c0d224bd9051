"""Translating a stream: a line out as soon as its sentence is done, in the order of the input."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from moses_feature.runtime.errors import DataError, LostProcessError, MosesFeatureError
from moses_feature.runtime.processes import ObjectProcess
from moses_feature.translation.translated import Translated, Translates

WAITING = 8
"""Sentences of a process that may wait, at most."""
SECONDS_OF_A_WAIT = 1.0
T = TypeVar("T")


def _next(waiting: queue.Queue[T]) -> T:
    """Return the next item; wait in steps, as a signal just before a wait does not end it."""
    while True:
        with suppress(queue.Empty):
            return waiting.get(timeout=SECONDS_OF_A_WAIT)


class TranslationStream:
    """Translators in processes of their own, of which the first begins to load at once.

    Args:
        make: makes a translator.
        jobs: the number of processes.
    """

    def __init__(self, make: Callable[[], Translates], jobs: int) -> None:
        self._make, self._jobs = make, jobs
        self._changing = threading.Lock()
        self._closed = False
        self._workers: list[ObjectProcess] = []
        self._start(1)

    def _start(self, jobs: int) -> None:
        """Start processes until there are so many."""
        with self._changing:
            while len(self._workers) < jobs and not self._closed:
                self._workers.append(ObjectProcess(self._make, "a translating process"))

    def translated(
        self, lines: Iterable[str], count: int = 1
    ) -> Iterator[Translated | MosesFeatureError]:
        """Yield the translations of each line, or why it has none, in the order of the lines.

        Lines are read in a thread, as far ahead as there is work for the processes. The first
        process makes the indexes, which the others only read, and translates while these load; a
        single line starts no others.

        Raises:
            MosesFeatureError: the system cannot be read.
            LostProcessError: a process has ended.
            DataError: a table is damaged.
        """
        self._workers[0].ready.result()
        waiting: queue.Queue[Future[Translated] | BaseException | None] = queue.Queue()
        room = threading.Semaphore(WAITING * self._jobs)

        def read() -> None:
            try:
                for number, line in enumerate(lines):
                    room.acquire()
                    if number:
                        self._start(self._jobs)
                    ready = [worker for worker in self._workers if worker.is_ready()]
                    worker = ready[number % len(ready)]
                    waiting.put(worker.call(Translates.translate, line, count))
                waiting.put(None)
            except BaseException as error:  # raised in the other thread
                waiting.put(error)

        threading.Thread(target=read, daemon=True).start()
        while (item := _next(waiting)) is not None:
            if isinstance(item, BaseException):
                raise item
            try:
                yield item.result()
            except MosesFeatureError as error:
                if isinstance(error, LostProcessError | DataError):  # not of this sentence alone
                    raise
                yield error
            room.release()

    def close(self) -> None:
        """End the processes."""
        with self._changing:
            self._closed = True
            while self._workers:
                self._workers.pop().close()
