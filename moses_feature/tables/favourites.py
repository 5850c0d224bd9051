"""The targets that a table and the network prefer, side by side (the paper's Table 2)."""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moses_feature.tables.score_lines import ScoreLine, phrases_of_table

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


def favourites(
    table: str | Path, column: int, phrases: Iterable[bytes], best: int = 3
) -> list[Favourites]:
    """Return the favourites for the given source phrases, in table order.

    Args:
        table: an augmented table, with the lines of a source phrase together.
        column: index of the network's probability in the score field.
        phrases: source phrases, one space between tokens.
        best: the number of targets.
    """
    wanted = set(phrases)
    return [
        _favourites(source, lines, best)
        for source, lines in phrases_of_table(table, column)
        if source in wanted
    ]


def favourites_of_long_phrases(
    table: str | Path, column: int, kind: Kind, phrases: int = 10, words: int = 4, best: int = 3
) -> list[Favourites]:
    """Return the favourites for the most or least frequent long source phrases; see `LongPhrases`.

    Args:
        table: an augmented table, with the lines of a source phrase together.
        column: index of the network's probability in the score field.
        kind: most or least frequent.
        phrases: the number of source phrases.
        words: the shortest source phrase in words.
        best: the number of targets.
    """
    chosen = LongPhrases(kind, phrases, words)
    for source, lines in phrases_of_table(table, column):
        chosen.add(source, lines)
    return chosen.favourites(best)


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


def as_text(rows: Iterable[Favourites]) -> str:
    """Return the favourites as a plain text table."""
    lines = []
    for row in rows:
        source = row.source.decode(errors="replace")
        lines.append(f"{source}   (seen {row.count:g} times)")
        left = [_cell(*favourite) for favourite in row.by_table]
        right = [_cell(*favourite) for favourite in row.by_network]
        width = max(36, *(len(cell) for cell in left))
        lines.append(f"    {'phrase table':<{width}}  network")
        lines += [f"    {a:<{width}}  {b}" for a, b in zip(left, right, strict=True)]
    return "\n".join(lines)


def _cell(target: bytes, probability: float) -> str:
    return f"{probability:8.2g}  {target.decode(errors='replace')}"
