"""Beam search for the targets with the highest p(target | source)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from moses_feature.arrays import Floats
from moses_feature.generation.prefixes import Prefixes
from moses_feature.generation.written import Written
from moses_feature.models.vocabulary import END


def likeliest(
    empty: Prefixes, longest: Sequence[int], beam: int, banned: Sequence[int] = ()
) -> list[list[Written]]:
    """Return for each source phrase the likeliest targets that were found, `beam` at most.

    A prefix that is no better than as many whole targets is given up: it can only become worse.

    Args:
        empty: an empty prefix for each source phrase.
        longest: the words of its targets at most.
        beam: how many prefixes of a source phrase go on.
        banned: words that no target may have.
    """
    searches = [_Search(beam, most) for most in longest]
    prefixes, owners = empty, list(range(len(searches)))
    while owners:
        log_probs = prefixes.log_probs()
        log_probs[:, banned] = -np.inf
        bounds = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
        parents, words, next_owners = [], [], []
        for first, end in pairwise(bounds):
            owner = owners[first]
            for parent, word in searches[owner].advance(log_probs[first:end]):
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
        ended: whole targets, likeliest first.
        live: prefixes that go on.
    """

    beam: int
    longest: int
    ended: list[Written] = field(default_factory=list)
    live: list[Written] = field(default_factory=lambda: [Written((), 0.0)])

    def advance(self, log_probs: Floats) -> list[tuple[int, int]]:
        """Go on with the best words after the live prefixes; return which prefix and which word.

        Args:
            log_probs: (live, V).
        """
        totals = np.array([before.log_prob for before in self.live])[:, None] + log_probs
        whole = [
            Written(before.ids, float(total))
            for before, total in zip(self.live, totals[:, END], strict=True)
        ]
        self.ended = sorted(self.ended + whole, key=lambda w: -w.log_prob)[: self.beam]
        if len(self.live[0].ids) == self.longest:
            return []
        totals[:, END] = -np.inf
        least = self.ended[-1].log_prob if len(self.ended) == self.beam else -np.inf
        flat = totals.ravel()
        best = np.argpartition(-flat, min(self.beam, len(flat)) - 1)[: self.beam]
        best = best[flat[best] > least]
        chosen = [divmod(place, totals.shape[1]) for place in np.sort(best).tolist()]
        self.live = [
            Written((*self.live[parent].ids, word), float(totals[parent, word]))
            for parent, word in chosen
        ]
        return chosen
