"""Phrase and reordering tables of a bitext, as Moses' training writes them, a part at a time.

Follows `phrase-extract/consolidate-main.cpp` (scores) and `lexical-reordering/` of Moses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_feature.building.bitext import Ids
from moses_feature.building.extraction import Extraction
from moses_feature.building.lexical import LexicalTable
from moses_feature.building.ngrams import bounds_of
from moses_feature.building.phrase_scores import PhrasePairs, phrase_pairs
from moses_feature.building.settings import BuildSettings
from moses_feature.building.smoothing import MOST_COUNTED, PairCounts, smoothing_of
from moses_feature.building.table_text import Links, Numbers, TableWriter
from moses_feature.decoder.reordering import ReorderingType
from moses_feature.runtime.arrays import Flags, Floats, Floats32

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
    """The tables of an aligned text, or of a part of it.

    Args:
        extraction: finds the phrase pairs of the text.
        settings: smoothing, the type of the reordering model.
        used: (sentences,) the sentences that are counted; None for all.
        wanted: (source phrases,) those that get lines; None for all.
        together: the occurrences of phrase pairs in a part; None for `PAIRS_TOGETHER`.

    Attributes:
        lexical: the probabilities of single words.
        parts: the occurrences in each part.
    """

    def __init__(
        self,
        extraction: Extraction,
        settings: BuildSettings,
        used: Flags | None = None,
        wanted: Flags | None = None,
        together: int | None = None,
    ) -> None:
        if used is None:
            used = np.ones(len(extraction.bitext), dtype=np.bool_)
        self._settings = settings
        self._reordering = settings.reordering_type
        self._extraction = extraction
        self.lexical = LexicalTable.of_bitext(extraction.bitext, used)
        self._of_source, self._of_target = extraction.totals(used)
        if wanted is not None:
            self._of_source[~wanted] = 0  # no line asks for their counts
        self._writer = TableWriter(extraction)
        bounds = bounds_of(self._of_source, together or PAIRS_TOGETHER)
        self.parts = extraction.parts(used, self._of_source, bounds)
        self._pairs = self._pair_counts()
        self._smoothing = smoothing_of(settings.smoothing, self._pairs)

    def _pair_counts(self) -> PairCounts:
        """Count distinct pairs, if the smoothing needs it."""
        parts = self.parts if self._settings.smoothing != "none" else []
        of_counts = np.zeros(MOST_COUNTED + 1, dtype=np.int64)
        sides = np.zeros_like(self._of_source), np.zeros_like(self._of_target)
        for found in parts:
            key = found.source.astype(np.int64) * len(self._of_target) + found.target
            pairs, counts = np.unique(key, return_counts=True)
            of_counts += np.bincount(counts, minlength=len(of_counts))[: len(of_counts)]
            for side, phrases in zip(sides, np.divmod(pairs, len(self._of_target)), strict=True):
                np.add.at(side, phrases, 1)
        return PairCounts(int(sides[0].sum()), of_counts, *sides)

    def part(self, number: int) -> TablePart:
        """Return a part of the tables."""
        pairs = phrase_pairs(self._extraction, self.lexical, self.parts[number])
        reordering = (
            b"" if self._reordering is None else self._orientations(pairs, self._reordering)
        )
        share = (number + 1) / len(self.parts)
        return TablePart(self._phrases(pairs), reordering, len(pairs.counts), float(share))

    def _phrases(self, pairs: PhrasePairs) -> bytes:
        totals = self._of_target[pairs.target], self._of_source[pairs.source]
        of_target, of_source, counts = map(_rounded, (*totals, pairs.counts))
        own = self._pairs.of_source[pairs.source], self._pairs.of_target[pairs.target]
        direct = self._smoothing.adjusted(counts, of_source, *own) / of_source
        inverse = self._smoothing.adjusted(counts, of_target, *own[::-1]) / of_target
        scores = inverse, pairs.inverse, direct, pairs.direct
        columns = [column.astype(np.float32) for column in (*scores, of_target, of_source, counts)]
        numbers = Numbers.of(columns)
        found = pairs.occurrences
        places = (found.first_link, found.last_link, found.source_place, found.target_place)
        bitext = self._extraction.bitext
        links = Links(bitext.links, *(of[pairs.best].astype(np.int64) for of in places))
        return self._writer.lines(pairs.source, pairs.target, numbers, 4, links, b" ||| |||")

    def _orientations(self, pairs: PhrasePairs, kind: ReorderingType) -> bytes:
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
