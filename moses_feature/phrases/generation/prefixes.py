"""Prefixes of targets that a network is writing, and what may come next; free of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from moses_feature.runtime.arrays import Floats, Floats32, Integers

WORDS_PER_SOURCE_WORD = 2
MORE_WORDS = 10
"""A target has at most this many words, and so many for each source word."""


def longest_translation(source_words: int) -> int:
    """Return how many words a target has at most."""
    return MORE_WORDS + WORDS_PER_SOURCE_WORD * source_words


@dataclass(frozen=True)
class Written:
    """A target that a network wrote.

    Attributes:
        ids: of its words in the order in which they were written, END not included.
        log_prob: natural log of p(target | source), END included.
        count: how often it was drawn; 1 if it was searched for.
    """

    ids: tuple[int, ...]
    log_prob: float
    count: int = 1


class Prefixes(Protocol):
    """N prefixes of targets that a network is writing.

    What is computed of a prefix does not depend on those beside it, to the bit.
    """

    @property
    def alignments(self) -> Floats32 | None:
        """(N, longest source + 1) what each next word is aligned to, if the network aligns.

        Probabilities of the words of its source and END; 0 behind it.
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


EmptyPrefixes = Callable[[Sequence[Sequence[int]]], Prefixes]
"""Makes empty prefixes for the ids of source phrases."""
