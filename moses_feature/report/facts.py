"""The description of an augmented table and its network, and statistics of one pass over it."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from moses_feature.moses.words import WordOptions
from moses_feature.phrases.generation.generator import Generator
from moses_feature.phrases.model import PhraseModel
from moses_feature.phrases.table_words import TableWords
from moses_feature.report.favourites import LongPhrases
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.json_files import member
from moses_feature.tables.features_json import (
    features_json,
    read_columns,
    read_features,
    table_words,
)
from moses_feature.tables.score_lines import ScoreLine, phrases_of_table

COUNTS = {
    "lines_written": "lines",
    "clipped_scores": "scores clipped to Moses' floor",
    "unknown_source_words": "unknown words, source",
    "unknown_target_words": "unknown words, target",
}
"""Counts that the file beside a table may have, with their labels."""


@dataclass(frozen=True)
class Facts:
    """The content of the file beside a table.

    Attributes:
        columns: the names of the new columns.
        counts: of lines and words, if they are known.
        command: the command that made the table.
        words: how its tokens became words.
    """

    columns: list[str]
    counts: dict[str, int]
    command: str
    words: TableWords

    @classmethod
    def read(cls, table_path: str) -> Facts:
        """Read the file beside a table.

        Raises:
            FormatError: the file is damaged.
        """
        path, content, what = features_json(table_path), read_features(table_path), "facts"
        counts = {
            name: member(content, name, int, path, what) for name in COUNTS if name in content
        }
        command = member(content, "command", str, path, what) if "command" in content else ""
        return cls(list(read_columns(table_path)), counts, command, table_words(table_path))

    @property
    def escaped(self) -> bool:
        """Whether the tokens of the table are escaped."""
        return self.words.escaped != "no"


@dataclass(frozen=True)
class ReadNetwork:
    """A network, and the vocabulary that it reads."""

    model: PhraseModel
    generator: Generator
    words: WordOptions

    def ids(self, phrase: bytes) -> list[int]:
        """Return the ids of a source phrase of the table."""
        return self.model.source.ids(self.words.pair(phrase, b"")[0])


T = TypeVar("T")

BIN = 0.25
"""Width of a bin of log probabilities."""
OUTLIERS = 25
LONG = 4
"""The fewest words of a long phrase."""
MOST_PHRASES = 5_000
"""The number of most frequent long phrases in their map."""


@dataclass
class Density:
    """The joint distribution of the pairs' log p by the table and by the network.

    Attributes:
        counts: of pairs, by bin of the table's log p and bin of the network's; bin n is the
            interval from -BIN (n + 1) to -BIN n.
        examples: the first pair of each bin in the table.
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
    """A summary of the pairs of a table.

    Attributes:
        lines, sources: the number of pairs, and of distinct source phrases.
        long_phrases: the number of long source phrases.
        density: of all pairs.
        frequent, rare: long source phrases.
    """

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
        """Add a source phrase with its lines."""
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
            _keep(self._phrases, (lines[0].source_count, -self.sources, source), MOST_PHRASES)

    @property
    def phrases(self) -> list[bytes]:
        """The most frequent long source phrases, the most frequent first."""
        return [phrase for _, _, phrase in sorted(self._phrases, reverse=True)]

    @property
    def preferred_by_network(self) -> list[ScoreLine]:
        """The pairs that the network finds likelier than the table does, by difference."""
        return [line for _, _, line in sorted(self._above, reverse=True)]

    @property
    def preferred_by_table(self) -> list[ScoreLine]:
        """The pairs that the table finds likelier than the network does, by difference."""
        return [line for _, _, line in sorted(self._below, reverse=True)]


def summarise(table: str | Path, column: int) -> PairSummary:
    """Read an augmented table; see `phrases_of_table`.

    Raises:
        FormatError: the table is empty; and as `phrases_of_table` does.
    """
    summary = PairSummary()
    for source, lines in phrases_of_table(table, column):
        summary.add(source, lines)
    if not summary.lines:
        raise FormatError(table, "phrase pairs", "none")
    return summary


def bin_of(log_prob: float) -> int:
    """Return the bin of a log probability."""
    return int(-min(log_prob, 0.0) / BIN)


def _keep(heap: list[tuple[float, int, T]], candidate: tuple[float, int, T], most: int) -> None:
    """Keep the candidates with the largest first numbers, of equal ones the first."""
    if len(heap) < most:
        heapq.heappush(heap, candidate)
    elif candidate[0] > heap[0][0]:
        heapq.heapreplace(heap, candidate)
