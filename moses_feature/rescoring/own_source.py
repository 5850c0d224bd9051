"""Whether a feature explains translations by their own source sentences."""

from __future__ import annotations

import logging
from threading import Lock

logger = logging.getLogger(__name__)

FEWEST, MOST = 20, 50
"""The fewest translations to judge by, and the most that are tried."""
LEAST_BETTER = 0.7
"""The least share that a translation's own sentence explains better than another; by chance 0.5."""


class OwnSource:
    """Counts translations that their own sentence explains better than another one.

    Thread-safe.

    Args:
        feature: the name of the feature that scores them.
        source: the name of the source text.

    Attributes:
        is_done: whether enough translations were tried.
    """

    def __init__(self, feature: str, source: str) -> None:
        self._names = feature, source
        self._tried = self._better = 0
        self._lock = Lock()
        self.is_done = False

    def add(self, own: float, other: float) -> None:
        """Count a translation.

        Args:
            own: mean log p of a word, given its own sentence.
            other: the same, given another sentence.
        """
        with self._lock:
            self._tried += 1
            self._better += own > other
        if self._tried >= MOST:
            self.finish()

    def finish(self) -> None:
        """Warn once if too few translations were explained better by their own sentences."""
        with self._lock:
            if self.is_done:
                return
            self.is_done = True
        if self._tried >= FEWEST and self._better < LEAST_BETTER * self._tried:
            feature, source = self._names
            logger.warning(
                "%s: only %d of %d translations are likelier given their own sentence than given "
                "the one beside it; with a good network nearly all are. Has it learnt enough, do "
                "the lists belong to %s, and the network to these languages?",
                feature,
                self._better,
                self._tried,
                source,
            )
