"""Pack, score and append columns to parts of a table, several parts at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from copy import copy
from functools import partial
from itertools import cycle
from threading import Lock
from typing import Any, Protocol, TypeVar

from moses_feature.phrases.packing import Packed
from moses_feature.phrases.scorer import AnyScorer
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.processes import ObjectProcess
from moses_feature.tables.columns import NewColumns, ScoredPart
from moses_feature.tables.parts import PartOfTable

Result = TypeVar("Result")

PARTS_PER_HELPER = 4
"""Parts in progress for each helper, so that neither it nor the scorer waits."""


class ScoringPool(Protocol):
    """Turns parts into parts with the new columns.

    Attributes:
        room: the number of parts that keep it busy.
    """

    @property
    def room(self) -> int:
        """See above."""

    def submit(self, part: PartOfTable) -> Future[ScoredPart]:
        """Start work on a part; the future raises its errors."""

    def close(self) -> None:
        """End the pool, even if it is at work."""


OpenPool = Callable[[NewColumns], closing[ScoringPool]]


class HelperHere:
    """A helper in this process, for tables too small for another process."""

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
        """Do nothing: there is no process to end."""


Helper = HelperHere | ObjectProcess
"""Calls methods of `NewColumns`; a process has imported neither torch nor the commands."""


def helper_process(columns: NewColumns) -> Helper:
    """Return a helper in a process of its own, which starts in less than a second."""
    return ObjectProcess(partial(copy, columns), "a helper process")


class Pipeline:
    """Scores part after part while helpers pack others and append columns; see `ScoringPool`.

    The helpers are started with the second part: many tables are too small to need one.
    """

    def __init__(
        self, scorers: Sequence[AnyScorer], columns: NewColumns, helpers: int | None = None
    ) -> None:
        helpers = helpers or max(scorer.helpers for scorer in scorers)
        self._scorers = scorers
        self._columns = columns
        self._count = helpers
        self._scoring = ThreadPoolExecutor(1)
        self._helpers: Sequence[Helper] = [HelperHere(columns)]
        self._turns = cycle(self._helpers)
        self._begun = False
        self._starting = Lock()
        self.room = PARTS_PER_HELPER * helpers

    def submit(self, part: PartOfTable) -> Future[ScoredPart]:
        """Start work on a part; its helper packs it now, and appends the columns in the end."""
        scored: Future[ScoredPart] = Future()
        with self._starting:
            if self._begun and isinstance(self._helpers[0], HelperHere):
                self._helpers = [helper_process(self._columns) for _ in range(self._count)]
                self._turns = cycle(self._helpers)
            self._begun = True
            helper = next(self._turns)
        packed = helper.call(NewColumns.pack, part)
        self._scoring.submit(self._score, helper, part.number, packed, scored)
        return scored

    def _score(
        self, helper: Helper, number: int, packed: Future[list[Packed]], scored: Future[ScoredPart]
    ) -> None:
        try:
            log_probs = [
                scorer.score_packed(of_model).log_probs
                for scorer, of_model in zip(self._scorers, packed.result(), strict=True)
            ]
            appended = helper.call(NewColumns.append, number, log_probs)
            appended.add_done_callback(partial(_pass_on, scored))
        except BaseException as error:  # raised again by the future
            scored.set_exception(error)

    def close(self) -> None:
        """End the helpers and the scoring."""
        for helper in self._helpers:
            helper.close()
        self._scoring.shutdown(cancel_futures=True)


@contextmanager
def local_pools(scorers: Sequence[AnyScorer]) -> Iterator[OpenPool]:
    """Yield a function that opens a pool in this process."""
    yield lambda columns: closing(Pipeline(scorers, columns))


def _pass_on(scored: Future[ScoredPart], appended: Future[ScoredPart]) -> None:
    try:
        scored.set_result(appended.result())
    except BaseException as error:  # raised again by the future
        scored.set_exception(error)
