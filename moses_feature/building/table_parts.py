"""The tables of a text in parts, which are made in threads.

A part has the lines of some source phrases, so that parts need no merging.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from moses_feature.building import tables as of_tables
from moses_feature.building.bitext import Bitext
from moses_feature.building.extraction import Extraction
from moses_feature.building.folds import phrases_in
from moses_feature.building.settings import BuildSettings
from moses_feature.building.tables import TablePart, Tables
from moses_feature.runtime.arrays import Integers
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


def parts_of(tables: FoldTables, fold: int | None) -> Iterator[TablePart]:
    """Make the parts of the tables without a fold, in threads; yield them in their order."""
    waiting: deque[Future[TablePart]] = deque()
    with ThreadPoolExecutor(cores()) as threads:
        for number in range(len(tables.of(fold).parts)):
            waiting.append(threads.submit(tables.part, fold, number))
            if len(waiting) > cores():
                yield waiting.popleft().result()
        for part in waiting:
            yield part.result()
