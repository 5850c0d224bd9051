"""Making the parts of tables: in threads of this process, or on a Ray cluster.

A part has the lines of some source phrases, so that parts need no merging: the tables of a cluster
have the bytes of those of one machine. Every worker has the whole text, and its phrase pairs on
disk.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

from moses_feature.build import tables as of_tables
from moses_feature.build.bitext import Bitext
from moses_feature.build.extraction import Extraction
from moses_feature.build.folds import phrases_in
from moses_feature.build.settings import BuildSettings
from moses_feature.build.tables import TablePart, Tables
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.cluster import ActorPool, connected
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.processes import cores

logger = logging.getLogger(__name__)


class FoldTables:
    """The tables of a text, and those without the sentences of each of its folds.

    Args:
        bitext: the text.
        settings: how to build.
        folds: (sentences,) the fold of each; None without folds.
        folder: where phrase pairs are kept; None for memory.
        together: the occurrences of phrase pairs in a part; None for the usual ones.
    """

    def __init__(
        self,
        bitext: Bitext,
        settings: BuildSettings,
        folds: Integers | None,
        folder: Path | None = None,
        together: int | None = None,
    ) -> None:
        self.bitext, self.settings, self.folds = bitext, settings, folds
        self.together = together or of_tables.PAIRS_TOGETHER
        kind = settings.reordering_type
        by_phrases = kind is not None and kind.kind == "phrase"
        self._extraction = Extraction(bitext, settings.phrase_length, by_phrases, folder)
        self._lock = threading.Lock()
        self._last: tuple[int | None, Tables] | None = None

    def of(self, fold: int | None) -> Tables:
        """Return the tables without a fold, for the phrases that it has; None for all."""
        with self._lock:
            if self._last is None or self._last[0] != fold:
                self._last = None  # of two folds, one is in memory at a time
                self._last = fold, self._tables(fold)
            return self._last[1]

    def _tables(self, fold: int | None) -> Tables:
        if fold is None or self.folds is None:
            return Tables(self._extraction, self.settings, together=self.together)
        mine = self.folds == fold
        wanted = phrases_in(self._extraction, mine)
        return Tables(self._extraction, self.settings, ~mine, wanted, self.together)

    def part(self, fold: int | None, number: int) -> TablePart:
        """Return a part of the tables without a fold."""
        return self.of(fold).part(number)


class PartMaker(NamedTuple):
    """Makes parts of tables, several at a time.

    Attributes:
        submit: begins to make a part; see `FoldTables.part`.
        at_once: how many.
    """

    submit: Callable[[int | None, int], Future[TablePart]]
    at_once: int


def parts_of(tables: FoldTables, fold: int | None, maker: PartMaker) -> Iterator[TablePart]:
    """Yield the parts of the tables without a fold in their order."""
    waiting: deque[Future[TablePart]] = deque()
    for number in range(len(tables.of(fold).parts)):
        waiting.append(maker.submit(fold, number))
        if len(waiting) > maker.at_once:
            yield waiting.popleft().result()
    for part in waiting:
        yield part.result()


@contextmanager
def part_maker(tables: FoldTables, ray: str | None) -> Iterator[PartMaker]:
    """Yield what makes parts: threads, or workers on the Ray cluster at an address.

    See `moses_feature.runtime.cluster.connected` about addresses and errors.
    """
    if ray is None:
        with ThreadPoolExecutor(cores()) as threads:
            yield PartMaker(lambda *of: threads.submit(tables.part, *of), cores())
        return
    with connected(ray) as cluster:
        # A worker on each machine, with as many threads as the smallest one has cores.
        count = min((cores for cores, _ in cluster.machines if cores), default=1)
        workers = max(1, cluster.places(count))
        logger.info("%d workers with %d threads each", workers, count)
        actor = cluster.ray.remote(TableWorker).options(num_cpus=count, max_concurrency=count + 1)
        text = cluster.ray.put(tables.bitext)
        given = tables.settings, tables.folds, tables.together  # so that parts are the same
        pool = ActorPool(cluster, lambda: actor.remote(text, *given), workers, count)
        with closing(pool):
            yield PartMaker(
                lambda fold, number: pool.submit(f"part {number + 1}", fold, number),
                workers * (count + 1),
            )


class TableWorker:
    """The work of an actor: takes numbers of parts, returns parts."""

    def __init__(
        self, bitext: Bitext, settings: BuildSettings, folds: Integers | None, together: int
    ) -> None:
        self._tables = FoldTables(bitext, settings, folds, Path(gettempdir()), together)

    def ready(self) -> None:
        """Return once the phrases of the text are numbered."""

    def do(self, fold: int | None, number: int) -> TablePart | MosesFeatureError:
        """Return a part, or the error that prevents it."""
        try:
            return self._tables.part(fold, number)
        except MosesFeatureError as error:
            return error
