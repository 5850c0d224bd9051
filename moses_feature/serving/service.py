"""Translating processes behind a bounded queue; free of HTTP."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from moses_feature.runtime.errors import LostProcessError, MosesFeatureError
from moses_feature.runtime.processes import ObjectProcess
from moses_feature.translation.translated import Translated, Translates

logger = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 2
"""How often a sentence is tried whose process is lost."""


class BusyError(MosesFeatureError):
    """More sentences wait than may."""


class TooLongError(MosesFeatureError):
    """A sentence has not been translated in time."""


class Counts:
    """What the service has done, for `/metrics`."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.sentences = 0
        self.failed = 0
        self.seconds = 0.0
        self.lost = 0
        self.waiting = 0
        self.workers = 0

    def answered(self, path: str, status: int) -> None:
        """Count an answer to a request."""
        self.requests[path, status] = self.requests.get((path, status), 0) + 1

    def text(self) -> str:
        """Return the counts in Prometheus' text format."""
        begin = "moses_feature_"
        lines = [f"# TYPE {begin}requests_total counter"]
        lines += [
            f'{begin}requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(self.requests.items())
        ]
        for name, kind, value in (
            ("sentences_total", "counter", self.sentences),
            ("failed_sentences_total", "counter", self.failed),
            ("sentence_seconds_total", "counter", round(self.seconds, 6)),
            ("lost_processes_total", "counter", self.lost),
            ("waiting_sentences", "gauge", self.waiting),
            ("processes", "gauge", self.workers),
        ):
            lines += [f"# TYPE {begin}{name} {kind}", f"{begin}{name} {value}"]
        return "\n".join(lines) + "\n"


class Service:
    """Translates sentences in processes of its own, in the order in which they come.

    A process that is lost is replaced, and its sentence is translated by another one. So is a
    process whose sentence takes too long.

    Args:
        make: makes a translator.
        jobs: the number of processes.
        most_waiting: the most sentences that may wait for a process.
        time_limit: the most seconds of a sentence, the waiting included.
    """

    def __init__(
        self,
        make: Callable[[], Translates],
        jobs: int,
        most_waiting: int,
        time_limit: float,
    ) -> None:
        self._make = make
        self._jobs = jobs
        self._most_waiting = most_waiting
        self._time_limit = time_limit
        self._free: asyncio.Queue[ObjectProcess] = asyncio.Queue()
        self._all: set[ObjectProcess] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.counts = Counts()

    async def start(self) -> None:
        """Start the processes; the first one makes the indexes, which the others only read.

        Raises:
            MosesFeatureError: the system cannot be read.
        """
        await self._add()
        await asyncio.gather(*(self._add() for _ in range(self._jobs - 1)))

    async def _add(self) -> None:
        worker = ObjectProcess(self._make, "a translating process")
        self._all.add(worker)
        await asyncio.wrap_future(worker.ready)
        self.counts.workers += 1
        self._free.put_nowait(worker)

    def admit(self, sentences: int) -> None:
        """Take sentences into the queue.

        Raises:
            BusyError: too many would wait.
        """
        if self.counts.waiting and self.counts.waiting + sentences > self._most_waiting:
            raise BusyError(f"expected {self._most_waiting} waiting sentences at most")
        self.counts.waiting += sentences

    async def translate(self, line: str, count: int, as_tokens: bool) -> Translated:
        """Translate a sentence that was admitted; see `Translates`.

        Raises:
            TooLongError: the time limit has passed.
            LostProcessError: every process that tried was lost.
            MosesFeatureError: the sentence cannot be translated.
        """
        begun = time.monotonic()
        try:
            found = await self._tried(line, count, as_tokens, begun + self._time_limit)
        except BaseException:
            self.counts.failed += 1
            raise
        finally:
            self.counts.waiting -= 1
            self.counts.sentences += 1
            self.counts.seconds += time.monotonic() - begun
        return found

    async def _tried(self, line: str, count: int, as_tokens: bool, until: float) -> Translated:
        for attempt in range(ATTEMPTS):
            worker = await self._within(until, self._free.get())
            work = asyncio.ensure_future(self._work(worker, line, count, as_tokens, until))
            self._tasks.add(work)
            work.add_done_callback(self._tasks.discard)
            work.add_done_callback(_forget)
            try:  # what has begun is done, though nobody may wait for it any more
                return await asyncio.shield(work)
            except LostProcessError:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("a sentence is tried once at least")

    async def _work(
        self, worker: ObjectProcess, line: str, count: int, as_tokens: bool, until: float
    ) -> Translated:
        """Have a process translate a sentence; after that it is free, or replaced."""
        call = asyncio.wrap_future(worker.call(Translates.translate, line, count, as_tokens))
        call.add_done_callback(_forget)
        try:
            found = await self._within(until, asyncio.shield(call))
        except (LostProcessError, TooLongError):
            self._replace(worker)
            raise
        except MosesFeatureError:
            self._free.put_nowait(worker)
            raise
        self._free.put_nowait(worker)
        return found

    async def _within(self, until: float, work: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(work, until - time.monotonic())
        except TimeoutError:
            seconds = f"{self._time_limit:g} seconds"
            raise TooLongError(f"expected a translation within {seconds}") from None

    def _replace(self, worker: ObjectProcess) -> None:
        self.counts.lost += 1
        self.counts.workers -= 1
        self._all.discard(worker)
        task = asyncio.get_running_loop().create_task(self._replaced(worker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replaced(self, worker: ObjectProcess) -> None:
        await asyncio.to_thread(worker.close)
        try:
            await self._add()
        except MosesFeatureError as error:
            logger.warning("a translating process could not be replaced: %s", error)

    def close(self) -> None:
        """End the processes."""
        for task in self._tasks:
            task.cancel()
        for worker in self._all:
            worker.close()
        self._all = set()


def _forget(call: asyncio.Future[Any]) -> None:
    """Take note of how work ended that nobody may wait for."""
    if not call.cancelled():
        call.exception()
