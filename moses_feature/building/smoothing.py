"""Smoothed relative frequencies of phrase pairs, as `phrase-extract/consolidate-main.cpp` has them.

Good-Turing, and Kneser-Ney (Foster, Kuhn and Johnson 2006). All numbers have 32 bits, as in Moses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_feature.building.bitext import Ids
from moses_feature.runtime.arrays import Floats32, Integers

MOST_COUNTED = 10
"""How many pairs occur so often is counted up to here."""


@dataclass(frozen=True)
class PairCounts:
    """What is counted over all distinct phrase pairs.

    Attributes:
        distinct: how many there are.
        of_counts: (`MOST_COUNTED` + 1,) how many occur 0, 1, 2, … times.
        of_source, of_target: how many have each source phrase, and each target phrase.
    """

    distinct: int
    of_counts: Integers
    of_source: Ids
    of_target: Ids


class Smoothing:
    """Makes counts that are divided by the counts of one side; here relative frequencies."""

    def adjusted(self, counts: Floats32, of_side: Floats32, own: Ids, other: Ids) -> Floats32:
        """Return the adjusted counts (n,) of pairs.

        Args:
            counts: (n,) how often each pair occurs.
            of_side: (n,) how often its phrase of the given side occurs.
            own: (n,) how many distinct pairs have that phrase.
            other: (n,) how many have its phrase of the other side.
        """
        del of_side, own, other
        return counts


class GoodTuring(Smoothing):
    """Discounts rare pairs; see `Smoothing`."""

    def __init__(self, pairs: PairCounts) -> None:
        of_counts, discounts = pairs.of_counts.tolist(), [np.float32(0.01)]
        for count in range(1, MOST_COUNTED):
            one = np.float32(count + 1) / np.float32(count)
            ratio = (of_counts[count + 1] + 0.1) / (of_counts[count] + 0.1)
            discount = np.float32(float(one) * ratio)
            discounts.append(max(min(discount, np.float32(1)), discounts[-1]))
        self._discounts = np.array(discounts, dtype=np.float32)

    def adjusted(self, counts: Floats32, of_side: Floats32, own: Ids, other: Ids) -> Floats32:
        """Return discounted counts; frequent pairs keep theirs."""
        del of_side, own, other
        rare = counts < len(self._discounts) - 1
        found: Floats32 = counts.copy()
        found[rare] *= self._discounts[counts[rare].astype(np.int64)]
        return found


class KneserNey(Smoothing):
    """Absolute discounting, with what is left given by numbers of distinct pairs."""

    def __init__(self, pairs: PairCounts) -> None:
        once, twice, thrice, often = (float(n) for n in pairs.of_counts[1:5])
        y = np.float32(once / max(once + 2 * twice, 1))
        found = (
            1 - 2 * y * twice / max(once, 1),
            2 - 3 * y * thrice / max(twice, 1),
            3 - 4 * y * often / max(thrice, 1),
        )
        self._discounts = np.minimum(
            np.array(found, np.float32), np.array((0.9, 1.9, 2.9), np.float32)
        )
        self._distinct = np.float32(pairs.distinct)

    def adjusted(self, counts: Floats32, of_side: Floats32, own: Ids, other: Ids) -> Floats32:
        """Return smoothed counts."""
        discount = self._discounts[np.minimum(counts, 3).astype(np.int64) - 1]
        discount = np.where(discount > counts, counts - np.float32(0.01), discount)
        background = other.astype(np.float32) / self._distinct
        left = discount * own.astype(np.float32) / of_side
        found: Floats32 = counts - discount + of_side * left * background
        return found


def smoothing_of(name: str, pairs: PairCounts) -> Smoothing:
    """Return a way to smooth, by its name."""
    if name == "good-turing":
        return GoodTuring(pairs)
    return KneserNey(pairs) if name == "kneser-ney" else Smoothing()
