"""The embedded decoder in several processes, each with a part of the sentences.

The parts are contiguous, and what a process knows of tables and language models is kept from one
time to the next. The result does not depend on the number of processes.
"""

from __future__ import annotations

import logging
import multiprocessing
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from mert.decoders.embedded.decoder import EmbeddedDecoder, SearchLimits
from mert.decoders.embedded.system import System
from mert.features import FeatureSet
from mert.source_phrases import Sentence
from moses_feature.errors import MosesFeatureError
from moses_feature.files import whole_file

SECONDS_BETWEEN_REPORTS = 0.5


@dataclass(frozen=True)
class _Order:
    """What a process is to do: write the n-best lists of its sentences."""

    features: FeatureSet
    count: int
    path: Path


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection


def embedded_decoder(
    system: System,
    sentences: Sequence[Sentence],
    limits: SearchLimits,
    jobs: int,
    first: int = 0,
) -> EmbeddedDecoder | Workers:
    """Return a decoder for the sentences that runs in this process, or in several.

    Args:
        system: the models.
        sentences: as tokens.
        limits: of the search.
        jobs: processes.
        first: the number of the first sentence, for one process.
    """
    if (jobs := min(jobs, len(sentences))) > 1:
        return Workers(system, sentences, limits, jobs)
    return EmbeddedDecoder(system, sentences, limits, first)


class Workers:
    """Embedded decoders in processes of their own; see `Decoder`.

    Raises:
        MosesFeatureError: a process could not read the models.
    """

    def __init__(
        self, system: System, sentences: Sequence[Sentence], limits: SearchLimits, jobs: int
    ) -> None:
        self.features: FeatureSet = system.features
        self._workers: list[_Worker] = []
        context = multiprocessing.get_context("spawn")
        bounds = [len(sentences) * job // jobs for job in range(jobs + 1)]
        for first, last in pairwise(bounds):
            mine, theirs = context.Pipe()
            process = context.Process(
                target=_work,
                args=(theirs, system, sentences[first:last], limits, first),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, mine))
        self._wait(lambda _: None)

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate all sentences; see `Decoder`."""
        parts = [path.with_name(f".{path.name}.part-{n}.gz") for n in range(len(self._workers))]
        try:
            for worker, part in zip(self._workers, parts, strict=True):
                worker.connection.send(_Order(features, count, part))
            self._wait(report)
            with whole_file(path) as temporary, temporary.open("wb") as file:
                for part in parts:  # gzip members one after the other are a gzip file
                    with part.open("rb") as content:
                        shutil.copyfileobj(content, file)
        finally:
            for part in parts:
                part.unlink(missing_ok=True)

    def _wait(self, report: Callable[[int], None]) -> None:
        """Wait until every process has done what it was told."""
        waiting = {worker.connection: worker for worker in self._workers}
        while waiting:
            for connection in wait(list(waiting)):
                worker = waiting[connection]  # type: ignore[index]
                try:
                    message = worker.connection.recv()
                except EOFError:
                    worker.process.join()
                    code = worker.process.exitcode
                    self.close()
                    raise MosesFeatureError(
                        f"a decoding process ended without a word, exit code {code} (negative: "
                        "killed by this signal, 9 often for want of memory)"
                    ) from None
                if isinstance(message, BaseException):
                    self.close()
                    raise message
                if message is None:
                    del waiting[worker.connection]
                else:
                    report(message)

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
            worker.process.join()
        self._workers = []


def _work(
    connection: Connection,
    system: System,
    sentences: Sequence[Sentence],
    limits: SearchLimits,
    first: int,
) -> None:
    """Serve orders until the connection is closed; None says that one is done."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        decoder = EmbeddedDecoder(system, sentences, limits, first)
        connection.send(None)
        while True:
            order = connection.recv()
            decoder.write_nbest(order.features, order.count, order.path, _Reporter(connection))
            connection.send(None)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        return
    except MosesFeatureError as error:
        connection.send(error)


class _Reporter:
    """Tells the parent how many sentences were done, now and then."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._done = 0
        self._last = time.monotonic()

    def __call__(self, done: int) -> None:
        self._done += done
        if time.monotonic() - self._last > SECONDS_BETWEEN_REPORTS:
            self._connection.send(self._done)
            self._done = 0
            self._last = time.monotonic()
