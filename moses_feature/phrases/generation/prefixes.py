"""Targets that networks write: beam search, and drawing (section 4.4); free of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

from moses_feature.networks.kernels import best_words
from moses_feature.networks.vocabulary import END
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
        return None

    def log_probs(self) -> Floats:
        """Return log p (N, V), natural logs, of each word and END after each prefix."""

    def best(self, count: int) -> tuple[Integers, Floats, Floats]:
        """Return the likeliest next words (END excluded), their log p, and log p of END.

        Returns:
            (N, count) words in any order, fewer if the vocabulary is smaller; (N, count) their log
            p; (N,) log p of END.
        """
        log_probs = self.log_probs()
        first = END + 1
        best = np.empty((len(log_probs), min(count, log_probs.shape[1] - first)))
        words = np.empty(best.shape, dtype=np.int64)
        best_words(log_probs, first, best, words)
        return words, best, log_probs[:, END]

    def grown(self, prefix: Integers, word: Integers) -> Prefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""


EmptyPrefixes = Callable[[Sequence[Sequence[int]]], Prefixes]
"""Makes empty prefixes for the ids of source phrases."""


def likeliest(
    empty: Prefixes, longest: Sequence[int], beam: int, banned: Sequence[int] = ()
) -> list[list[Written]]:
    """Return for each source phrase the likeliest targets found, at most `beam`.

    A prefix is dropped if `beam` finished targets are as likely: it can only become less likely.

    Args:
        empty: an empty prefix for each source phrase.
        longest: the longest target in words, for each source phrase.
        beam: prefixes of a source phrase that are extended.
        banned: words that no target may contain.
    """
    searches = [_LikeliestTargets(beam, most) for most in longest]
    search_together(empty, searches, beam + len(banned), banned)
    return [search.ended for search in searches]


class BeamSearch(Protocol):
    """The search for the targets of one source, which decides which prefixes go on."""

    def advance(
        self, words: Integers, log_probs: Floats, ends: Floats, alignments: Floats32 | None
    ) -> list[tuple[int, int]]:
        """Extend the live prefixes; return (prefix, word) of each longer one, none at the end.

        Args:
            words: (live, n) candidates for the next word, END excluded.
            log_probs: (live, n) their log p.
            ends: (live,) log p of END.
            alignments: (live, longest source + 1) of each next word, None without attention.
        """


def search_together(
    empty: Prefixes, searches: Sequence[BeamSearch], candidates: int, banned: Sequence[int] = ()
) -> None:
    """Run the searches of some sources to their ends, a word at a time.

    Args:
        empty: an empty prefix for each source.
        searches: the search of each.
        candidates: next words of a prefix that are considered.
        banned: words that no target may contain.
    """
    prefixes, owners = empty, list(range(len(searches)))
    while owners:
        found, log_probs, ends = prefixes.best(candidates)
        log_probs[np.isin(found, banned)] = -np.inf
        alignments = prefixes.alignments
        bounds = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
        parents, words, next_owners = [], [], []
        for first, end in pairwise(bounds):
            owner, mine = owners[first], slice(first, end)
            aligned = None if alignments is None else alignments[mine]
            chosen = searches[owner].advance(found[mine], log_probs[mine], ends[mine], aligned)
            for parent, word in chosen:
                parents.append(first + parent)
                words.append(word)
                next_owners.append(owner)
        owners = next_owners
        if owners:
            prefixes = prefixes.grown(np.array(parents), np.array(words))


@dataclass
class _LikeliestTargets:
    """The search for the likeliest targets of one source phrase; see `BeamSearch`.

    Attributes:
        ended: finished targets, likeliest first.
        live: prefixes to extend.
    """

    beam: int
    longest: int
    ended: list[Written] = field(default_factory=list)
    live: list[Written] = field(default_factory=lambda: [Written((), 0.0)])

    def advance(
        self, words: Integers, log_probs: Floats, ends: Floats, alignments: Floats32 | None
    ) -> list[tuple[int, int]]:
        """Extend the live prefixes by the best next words; see `BeamSearch`."""
        del alignments
        before = np.array([prefix.log_prob for prefix in self.live])
        whole = [
            Written(prefix.ids, total)
            for prefix, total in zip(self.live, (before + ends).tolist(), strict=True)
        ]
        self.ended = sorted(self.ended + whole, key=lambda w: -w.log_prob)[: self.beam]
        if len(self.live[0].ids) == self.longest:
            return []
        least = self.ended[-1].log_prob if len(self.ended) == self.beam else -np.inf
        totals = (before[:, None] + log_probs).ravel()
        best = np.argsort(-totals, kind="stable")[: self.beam]
        best = np.sort(best[totals[best] > least])
        parents = best // words.shape[1]
        chosen = list(zip(parents.tolist(), words.ravel()[best].tolist(), strict=True))
        self.live = [
            Written((*self.live[parent].ids, word), total)
            for (parent, word), total in zip(chosen, totals[best].tolist(), strict=True)
        ]
        return chosen


def draw(
    empty: Prefixes,
    sources: Sequence[Sequence[int]],
    longest: Sequence[int],
    samples: int,
    temperature: float = 1.0,
    seed: int = 1,
) -> list[list[Written]]:
    """Return the distinct targets that were drawn for each source phrase, likeliest first.

    The draws for a phrase depend only on the phrase, the seed and the temperature.

    Args:
        empty: an empty prefix for each source phrase.
        sources: the ids of their words.
        longest: the longest target in words, for each source phrase; a longer one is cut there,
            which is likely only for a network that has not learnt to end.
        samples: draws for each source phrase.
        temperature: log probabilities are divided by it; 1 samples the network's distribution.
        seed: seed of the random numbers.
    """
    randoms = [np.random.default_rng([seed, *source]) for source in sources]
    drawn: list[list[Written]] = [[] for _ in sources]
    prefixes = empty
    going_on = [(source, Written((), 0.0, samples)) for source in range(len(sources))]
    while going_on:
        log_probs = prefixes.log_probs()
        parents, words = [], []
        longer: list[tuple[int, Written]] = []
        for row, (source, before) in enumerate(going_on):
            if len(before.ids) == longest[source]:
                found, counts = np.array([END]), np.array([before.count])
            else:
                found, counts = np.unique(
                    _draw(log_probs[row], before.count, temperature, randoms[source]),
                    return_counts=True,
                )
            for word, count in zip(found.tolist(), counts.tolist(), strict=True):
                log_prob = before.log_prob + float(log_probs[row, word])
                if word == END:
                    drawn[source].append(Written(before.ids, log_prob, count))
                else:
                    parents.append(row)
                    words.append(word)
                    longer.append((source, Written((*before.ids, word), log_prob, count)))
        going_on = longer
        if going_on:
            prefixes = prefixes.grown(np.array(parents), np.array(words))
    return [sorted(of_one, key=lambda written: -written.log_prob) for of_one in drawn]


def _draw(
    log_probs: Floats, count: int, temperature: float, random: np.random.Generator
) -> Integers:
    """Draw words, given log p (V,) of each."""
    scaled = log_probs / temperature
    sums = np.cumsum(np.exp(scaled - scaled.max()))
    words: Integers = np.searchsorted(sums, random.random(count) * sums[-1], side="right")
    return np.minimum(words, len(sums) - 1)
