"""Parts of a table packed, scored and grown, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import cycle
from threading import Lock
from typing import Any, Protocol

from moses_feature.scoring.packing import Packed
from moses_feature.scoring.scorer import Scorer
from moses_feature.tables.columns import Grower, GrownPart
from moses_feature.tables.helpers import Helper, HelperHere, HelperProcess
from moses_feature.tables.parts import Part

PARTS_PER_HELPER = 4
"""Parts on their way for each helper, so that neither it nor the scorer waits."""


class Pool(Protocol):
    """Grows parts by the new columns.

    Attributes:
        room: parts that keep it busy.
    """

    @property
    def room(self) -> int:
        """See above."""

    def submit(self, part: Part) -> Future[GrownPart]:
        """Have a part grown; the future raises what is wrong with it."""

    def close(self) -> None:
        """End it, whatever it is doing."""


OpenPool = Callable[[Grower], closing[Pool]]


class Pipeline:
    """Scores part after part; helpers pack, grow and compress others meanwhile; see `Pool`.

    The helpers are started with the second part: many tables are not worth one.
    """

    def __init__(self, scorer: Scorer, grower: Grower, helpers: int) -> None:
        self._scorer = scorer
        self._grower = grower
        self._count = helpers
        self._scoring = ThreadPoolExecutor(1)
        self._helpers: Sequence[Helper] = [HelperHere(grower)]
        self._turns = cycle(self._helpers)
        self._begun = False
        self._one_at_a_time = Lock()
        self.room = PARTS_PER_HELPER * helpers

    def submit(self, part: Part) -> Future[GrownPart]:
        """Send a part on its way.

        Helpers grow parts in the order in which they packed them, so that this must be the order
        in which they are scored, too, whatever threads the parts come from.
        """
        with self._one_at_a_time:
            return self._submit(part)

    def _submit(self, part: Part) -> Future[GrownPart]:
        if self._begun and isinstance(self._helpers[0], HelperHere):
            self._helpers = [HelperProcess(self._grower) for _ in range(self._count)]
            self._turns = cycle(self._helpers)
        self._begun = True
        helper = next(self._turns)
        grown: Future[GrownPart] = Future()
        self._scoring.submit(self._score, helper, helper.call(Grower.pack, part), grown)
        return grown

    def _score(self, helper: Helper, packed: Future[Packed], grown: Future[GrownPart]) -> None:
        try:
            log_probs = self._scorer.score_packed(packed.result()).log_probs
            helper.call(Grower.grow, log_probs).add_done_callback(_passed_on_to(grown))
        except BaseException as error:  # raised by who waits for it
            grown.set_exception(error)

    def close(self) -> None:
        """End the helpers and what is being scored."""
        for helper in self._helpers:
            helper.close()
        self._scoring.shutdown(cancel_futures=True)


@contextmanager
def local_pools(scorer: Scorer) -> Iterator[OpenPool]:
    """Give what opens a pool in this process."""
    yield lambda grower: closing(Pipeline(scorer, grower, scorer.helpers))


def _passed_on_to(other: Future[Any]) -> Callable[[Future[Any]], None]:
    def pass_on(done: Future[Any]) -> None:
        if (error := done.exception()) is not None:
            other.set_exception(error)
        else:
            other.set_result(done.result())

    return pass_on
