"""Pack, score and append columns to parts of a table, several parts at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import cycle
from threading import Lock
from typing import Protocol

from moses_feature.phrases.packing import Packed
from moses_feature.phrases.scorer import AnyScorer
from moses_feature.tables.columns import NewColumns, ScoredPart
from moses_feature.tables.helpers import Helper, HelperHere, helper_process
from moses_feature.tables.parts import Part

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

    def submit(self, part: Part) -> Future[ScoredPart]:
        """Start work on a part; the future raises its errors."""

    def close(self) -> None:
        """End the pool, even if it is at work."""


OpenPool = Callable[[NewColumns], closing[ScoringPool]]


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
        self._one_at_a_time = Lock()
        self.room = PARTS_PER_HELPER * helpers

    def submit(self, part: Part) -> Future[ScoredPart]:
        """Start work on a part.

        Helpers append the columns in the order in which they packed the parts. Parts must therefore
        be scored in this order too, even if they come from several threads.
        """
        scored: Future[ScoredPart] = Future()
        with self._one_at_a_time:
            if self._begun and isinstance(self._helpers[0], HelperHere):
                self._helpers = [helper_process(self._columns) for _ in range(self._count)]
                self._turns = cycle(self._helpers)
            self._begun = True
            helper = next(self._turns)
            self._scoring.submit(self._score, helper, helper.call(NewColumns.pack, part), scored)
        return scored

    def _score(
        self, helper: Helper, packed: Future[list[Packed]], scored: Future[ScoredPart]
    ) -> None:
        try:
            log_probs = [
                scorer.score_packed(of_model).log_probs
                for scorer, of_model in zip(self._scorers, packed.result(), strict=True)
            ]
            helper.call(NewColumns.append, log_probs).add_done_callback(partial(_pass_on, scored))
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
