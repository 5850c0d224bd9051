"""What one pass over an augmented table finds: how table and network agree, and where not."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from moses_feature.runtime.errors import FormatError
from moses_feature.tables.favourites import LongPhrases
from moses_feature.tables.score_lines import ScoreLine, phrases_of_table

T = TypeVar("T")

BIN = 0.25
"""Width of a bin of log probabilities."""
OUTLIERS = 25
LONG = 4
"""Words of a long phrase at least."""


@dataclass
class Density:
    """How many pairs have which log p by the table and by the network.

    Attributes:
        counts: of pairs, by bin of the table's log p and bin of the network's; bin n holds those
            from -BIN (n + 1) to -BIN n.
        examples: a pair of each bin, the first in the table.
    """

    counts: Counter[tuple[int, int]] = field(default_factory=Counter)
    examples: dict[tuple[int, int], ScoreLine] = field(default_factory=dict)

    def add(self, line: ScoreLine) -> None:
        """Count a pair."""
        place = bin_of(line.table_log_prob), bin_of(line.network_log_prob)
        self.counts[place] += 1
        self.examples.setdefault(place, line)


@dataclass
class PairSummary:
    """What a report says of the pairs of a table.

    Attributes:
        lines, sources: how many pairs, and different source phrases.
        long_phrases: how many of them are long.
        density: of all pairs.
        frequent, rare: long source phrases.
        most_phrases: long source phrases to keep.
    """

    most_phrases: int
    lines: int = 0
    sources: int = 0
    density: Density = field(default_factory=Density)
    frequent: LongPhrases = field(default_factory=lambda: LongPhrases("frequent", words=LONG))
    rare: LongPhrases = field(default_factory=lambda: LongPhrases("rare", words=LONG))
    long_phrases: int = 0
    _phrases: list[tuple[float, int, bytes]] = field(default_factory=list)
    _above: list[tuple[float, int, ScoreLine]] = field(default_factory=list)
    _below: list[tuple[float, int, ScoreLine]] = field(default_factory=list)

    def add(self, source: bytes, lines: list[ScoreLine]) -> None:
        """Look at a source phrase with its lines."""
        self.sources += 1
        for line in lines:
            self.lines += 1
            self.density.add(line)
            difference = line.network_log_prob - line.table_log_prob
            side = self._above if difference > 0 else self._below
            if difference != 0 and line.known:
                _keep(side, (abs(difference), -self.lines, line), OUTLIERS)
        self.frequent.add(source, lines)
        self.rare.add(source, lines)
        if source.count(b" ") + 1 >= LONG:
            self.long_phrases += 1
            _keep(self._phrases, (lines[0].source_count, -self.sources, source), self.most_phrases)

    @property
    def phrases(self) -> list[bytes]:
        """The most frequent long source phrases, the most frequent first."""
        return [phrase for _, _, phrase in sorted(self._phrases, reverse=True)]

    @property
    def preferred_by_network(self) -> list[ScoreLine]:
        """The pairs that the network finds likelier than the table does, by most first."""
        return [line for _, _, line in sorted(self._above, reverse=True)]

    @property
    def preferred_by_table(self) -> list[ScoreLine]:
        """The pairs that the table finds likelier than the network does, by most first."""
        return [line for _, _, line in sorted(self._below, reverse=True)]


def summarise(table: str | Path, column: int, phrases: int) -> PairSummary:
    """Read an augmented table and keep so many long phrases; see `phrases_of_table`.

    Raises:
        FormatError: the table is empty; and as `phrases_of_table` does.
    """
    summary = PairSummary(phrases)
    for source, lines in phrases_of_table(table, column):
        summary.add(source, lines)
    if not summary.lines:
        raise FormatError(table, "phrase pairs", "none")
    return summary


def bin_of(log_prob: float) -> int:
    """Return the bin of a log probability."""
    return int(-min(log_prob, 0.0) / BIN)


def _keep(heap: list[tuple[float, int, T]], candidate: tuple[float, int, T], most: int) -> None:
    """Keep the candidates with the largest first number, of equal ones the first."""
    if len(heap) < most:
        heapq.heappush(heap, candidate)
    elif candidate[0] > heap[0][0]:
        heapq.heapreplace(heap, candidate)
