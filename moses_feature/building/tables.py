"""Phrase and reordering tables of a bitext, as Moses' training writes them, a part at a time.

A part has the lines of some source phrases, so that parts need no merging.
Follows `phrase-extract/consolidate-main.cpp` (scores) and `lexical-reordering/` of Moses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moses_feature.building.bitext import Bitext, Ids
from moses_feature.building.extraction import Extraction
from moses_feature.building.lexical import LexicalTable
from moses_feature.building.ngrams import bounds_of
from moses_feature.building.phrase_scores import ExtractedPairs, phrase_pairs
from moses_feature.building.settings import BuildSettings
from moses_feature.building.table_text import BuiltTableWriter, LinksOfLines, Numbers
from moses_feature.decoder.reordering import ReorderingType
from moses_feature.runtime.arrays import Floats, Floats32
from moses_feature.runtime.processes import cores

PAIRS_TOGETHER = 500_000
"""The occurrences of phrase pairs in a part, at most, unless a single phrase has more."""
SMOOTHING = 0.5
"""Added to the count of each orientation, as `train-model.perl` has it."""


@dataclass(frozen=True)
class TablePart:
    """A part of both tables.

    Attributes:
        phrases, reordering: lines of the phrase table and of the reordering table.
        lines: how many lines they have.
        share: of all occurrences, those up to here.
    """

    phrases: bytes
    reordering: bytes
    lines: int
    share: float


class Tables:
    """The tables of an aligned text.

    Args:
        bitext: the text.
        settings: the length of phrases, the type of the reordering model.
        folder: where phrase pairs are kept; None for memory.

    Attributes:
        lexical: the probabilities of single words.
    """

    def __init__(self, bitext: Bitext, settings: BuildSettings, folder: Path | None = None) -> None:
        self._reordering = settings.reordering_type
        by_phrases = self._reordering is not None and self._reordering.kind == "phrase"
        self._extraction = Extraction(bitext, settings.phrase_length, by_phrases, folder)
        self.lexical = LexicalTable.of_bitext(bitext)
        self._of_source, self._of_target = self._extraction.totals()
        self._writer = BuiltTableWriter(self._extraction)
        bounds = bounds_of(self._of_source, PAIRS_TOGETHER)
        self._parts = self._extraction.parts(self._of_source, bounds)

    def parts(self) -> Iterator[TablePart]:
        """Make the parts of the tables in threads; yield them in their order."""
        waiting: deque[Future[TablePart]] = deque()
        with ThreadPoolExecutor(cores()) as threads:
            for number in range(len(self._parts)):
                waiting.append(threads.submit(self._part, number))
                if len(waiting) > cores():
                    yield waiting.popleft().result()
            for part in waiting:
                yield part.result()

    def _part(self, number: int) -> TablePart:
        pairs = phrase_pairs(self._extraction, self.lexical, self._parts[number])
        reordering = (
            b"" if self._reordering is None else self._orientations(pairs, self._reordering)
        )
        share = (number + 1) / len(self._parts)
        return TablePart(self._phrases(pairs), reordering, len(pairs.counts), float(share))

    def _phrases(self, pairs: ExtractedPairs) -> bytes:
        totals = self._of_target[pairs.target], self._of_source[pairs.source]
        of_target, of_source, counts = map(_rounded, (*totals, pairs.counts))
        scores = counts / of_target, pairs.inverse, counts / of_source, pairs.direct
        columns = [column.astype(np.float32) for column in (*scores, of_target, of_source, counts)]
        numbers = Numbers.of(columns)
        found = pairs.occurrences
        places = (found.first_link, found.last_link, found.source_place, found.target_place)
        bitext = self._extraction.bitext
        links = LinksOfLines(bitext.links, *(of[pairs.best].astype(np.int64) for of in places))
        return self._writer.lines(pairs.source, pairs.target, numbers, 4, links, b" ||| |||")

    def _orientations(self, pairs: ExtractedPairs, kind: ReorderingType) -> bytes:
        """Return the lines of the reordering table."""
        first = np.arange(len(pairs.source))
        if not kind.on_target:
            first = np.flatnonzero(np.diff(pairs.source, prepend=-1))
        columns: list[Floats] = []
        for direction in kind.directions:
            counts = pairs.before if direction == "backward" else pairs.behind
            classes = np.zeros((kind.scores // len(kind.directions), len(first)))
            for orientation, of in kind.orientations.items():
                classes[of] += np.add.reduceat(counts[:, orientation], first)
            classes += SMOOTHING
            columns += list(classes / classes.sum(axis=0))
        target = pairs.target if kind.on_target else None
        return self._writer.lines(pairs.source[first], target, Numbers.of(columns), len(columns))


def _rounded(counts: Ids) -> Floats32:
    """Return counts as 32-bit numbers of six significant digits: Moses passes them on as text."""
    values = counts.astype(np.float32)
    for place in np.flatnonzero(counts > 999_999).tolist():
        values[place] = float(b"%.6g" % float(values[place]))
    return values
