"""What all networks that write have in common."""

from __future__ import annotations

from typing import Protocol

from moses_feature.arrays import Floats, Integers


class Prefixes(Protocol):
    """N prefixes of targets that a network is writing.

    What is computed of a prefix does not depend on those beside it, to the bit.
    """

    def log_probs(self) -> Floats:
        """Return log p (N, V), natural logs, of each word and END after each prefix."""

    def best(self, count: int) -> tuple[Integers, Floats, Floats]:
        """Return the likeliest next words, END not among them, and log p of END.

        Returns:
            (N, count) words in any order, fewer if there are no more; (N, count) their log p; and
            (N,) that of END.
        """

    def grown(self, prefix: Integers, word: Integers) -> Prefixes:
        """Return longer prefixes: some of these, and a word after each."""
