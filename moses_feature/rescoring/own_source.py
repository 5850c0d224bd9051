"""Whether a network explains translations better by their own sentences than by others."""

from __future__ import annotations

import logging
from threading import Lock

logger = logging.getLogger(__name__)

FEWEST, MOST = 20, 50
"""Translations that are tried before anything is said of them, and at all."""
LEAST_BETTER = 0.7
"""Share of them that their own sentences explain better; by chance it is a half."""


class OwnSource:
    """Counts translations that their own sentence explains better than another one.

    Threads may share it.

    Args:
        feature: the name of what explains them.
        source: the name of the text that was translated.

    Attributes:
        is_done: whether enough was tried.
    """

    def __init__(self, feature: str, source: str) -> None:
        self._names = feature, source
        self._tried = self._better = 0
        self._lock = Lock()
        self.is_done = False

    def add(self, own: float, other: float) -> None:
        """Count a translation.

        Args:
            own: log p a word with its own sentence.
            other: with another one.
        """
        with self._lock:
            self._tried += 1
            self._better += own > other
        if self._tried >= MOST:
            self.finish()

    def finish(self) -> None:
        """Say it, if too few were explained better; once."""
        with self._lock:
            if self.is_done:
                return
            self.is_done = True
        if self._tried >= FEWEST and self._better < LEAST_BETTER * self._tried:
            feature, source = self._names
            logger.warning(
                "%s explains %d of %d translations better by their own sentences than by the ones "
                "beside them, of a good network it is nearly all: do the lists belong to %s, and "
                "the network to these languages?",
                feature,
                self._better,
                self._tried,
                source,
            )
