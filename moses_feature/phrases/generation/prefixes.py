"""Prefixes of targets that a network is writing, and their next words; free of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from moses_feature.runtime.arrays import Floats, Floats32, Integers

WORDS_PER_SOURCE_WORD = 2
MORE_WORDS = 10
"""A target has at most this many words, plus this many for each source word."""


def longest_translation(source_words: int) -> int:
    """Return the longest target, in words, for a source of `source_words` words."""
    return MORE_WORDS + WORDS_PER_SOURCE_WORD * source_words


@dataclass(frozen=True)
class Written:
    """A target that a network wrote.

    Attributes:
        ids: its words in the order in which they were written, without END.
        log_prob: natural log of p(target | source), END included.
        count: how often it was drawn; 1 from beam search.
    """

    ids: tuple[int, ...]
    log_prob: float
    count: int = 1


class Prefixes(Protocol):
    """N prefixes of targets that a network is writing.

    The values of a prefix do not depend on the other prefixes, to the bit.
    """

    @property
    def alignments(self) -> Floats32 | None:
        """(N, longest source + 1) alignment of each next word, None without attention.

        Probabilities of the source words and END; 0 behind END.
        """

    def log_probs(self) -> Floats:
        """Return log p (N, V), natural logs, of each word and END after each prefix."""

    def best(self, count: int) -> tuple[Integers, Floats, Floats]:
        """Return the likeliest next words (END excluded), their log p, and log p of END.

        Returns:
            (N, count) words in any order, fewer if the vocabulary is smaller; (N, count) their log
            p; (N,) log p of END.
        """

    def grown(self, prefix: Integers, word: Integers) -> Prefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""


EmptyPrefixes = Callable[[Sequence[Sequence[int]]], Prefixes]
"""Makes empty prefixes for the ids of source phrases."""
