"""The targets that a table and the network prefer, side by side (the paper's Table 2)."""

from __future__ import annotations

import heapq
import zlib
from dataclasses import dataclass
from typing import Literal

from moses_feature.tables.score_lines import ScoreLine

Kind = Literal["frequent", "rare"]
FEWEST_TARGETS = 3


@dataclass(frozen=True)
class Favourites:
    """A source phrase and its best targets, the best first, with their probabilities.

    Attributes:
        source: the phrase.
        count: its count in the training corpus, if the table gives it.
        by_table, by_network: targets and p(target | source).
    """

    source: bytes
    count: float
    by_table: list[tuple[bytes, float]]
    by_network: list[tuple[bytes, float]]


class LongPhrases:
    """The most or least frequent long source phrases of those that are added.

    Only phrases of at least `words` words and with three or more targets count; among equally
    frequent ones the choice depends only on their spelling.
    """

    def __init__(self, kind: Kind, phrases: int = 10, words: int = 4) -> None:
        self._sign = 1 if kind == "frequent" else -1
        self._phrases = phrases
        self._words = words
        self._heap: list[tuple[tuple[float, int], bytes, list[ScoreLine]]] = []

    def add(self, source: bytes, lines: list[ScoreLine]) -> None:
        """Consider a source phrase with its lines."""
        if len(lines) < FEWEST_TARGETS or source.count(b" ") + 1 < self._words:
            return
        rank = (self._sign * lines[0].source_count, zlib.crc32(source))
        if len(self._heap) < self._phrases:
            heapq.heappush(self._heap, (rank, source, lines))
        elif rank > self._heap[0][0]:
            heapq.heapreplace(self._heap, (rank, source, lines))

    def favourites(self, best: int = 3) -> list[Favourites]:
        """Return the favourites of the chosen phrases, the best targets first."""
        return [
            _favourites(source, lines, best)
            for _, source, lines in sorted(self._heap, key=lambda chosen: chosen[0], reverse=True)
        ]


def _favourites(source: bytes, lines: list[ScoreLine], best: int) -> Favourites:
    by_table = heapq.nlargest(best, lines, key=lambda line: line.by_table)
    by_network = heapq.nlargest(best, lines, key=lambda line: line.by_network)
    return Favourites(
        source,
        lines[0].source_count,
        [(line.target, line.by_table) for line in by_table],
        [(line.target, line.by_network) for line in by_network],
    )
