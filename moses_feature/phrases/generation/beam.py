"""Beam search for the targets with the highest p(target | source)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from moses_feature.phrases.generation.prefixes import Prefixes, Written
from moses_feature.runtime.arrays import Floats, Integers


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
    searches = [_Search(beam, most) for most in longest]
    prefixes, owners = empty, list(range(len(searches)))
    while owners:
        found, log_probs, ends = prefixes.best(beam + len(banned))
        log_probs[np.isin(found, banned)] = -np.inf
        bounds = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
        parents, words, next_owners = [], [], []
        for first, end in pairwise(bounds):
            owner = owners[first]
            mine = slice(first, end)
            for parent, word in searches[owner].advance(found[mine], log_probs[mine], ends[mine]):
                parents.append(first + parent)
                words.append(word)
                next_owners.append(owner)
        owners = next_owners
        if owners:
            prefixes = prefixes.grown(np.array(parents), np.array(words))
    return [search.ended for search in searches]


@dataclass
class _Search:
    """The search for the targets of one source phrase.

    Attributes:
        ended: finished targets, likeliest first.
        live: prefixes to extend.
    """

    beam: int
    longest: int
    ended: list[Written] = field(default_factory=list)
    live: list[Written] = field(default_factory=lambda: [Written((), 0.0)])

    def advance(self, words: Integers, log_probs: Floats, ends: Floats) -> list[tuple[int, int]]:
        """Extend the live prefixes by the best next words; return (prefix, word) of each.

        Args:
            words: (live, n) candidates for the next word.
            log_probs: (live, n) their log p.
            ends: (live,) log p of END.
        """
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
