"""Phrase options as if a training sentence had not been trained on (Wuebker et al. 2010).

The phrase pairs extracted from a sentence pair make its own translation look better than that of
any unseen sentence. Here the sentence's own counts are subtracted: a phrase pair loses one for each
time that both of its phrases occur in the sentence pair, and is no option if none is left. The
relative frequencies are computed again from the remaining counts. Lexical weights, reordering
scores and pairs that no corpus has counted stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from moses_feature.decoder.phrase_options import PhraseOptions
from moses_feature.decoder.records import Options
from moses_feature.decoder.source_phrases import Sentence
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import UsageError

INVERSE, DIRECT = 0, 2
"""Columns of p(source | target) and p(target | source) in a table that Moses' training made."""
MOST_SMOOTHED = 1.0
"""The largest median difference (natural log) that smoothing makes to a relative frequency."""
OF_TARGET, OF_SOURCE, JOINT = range(3)
"""The columns of a table's counts field."""


class LeaveOneOut:
    """Subtracts the counts of training sentences from the phrase options.

    Args:
        options: phrase options with counts.
        references: the translations that the table was trained on.

    Raises:
        UsageError: a table without relative frequencies, or with other scores where Moses'
            training puts them.
    """

    def __init__(self, options: PhraseOptions, references: Sequence[Sentence]) -> None:
        self._options = options
        self._references = references
        self._longest = int(np.diff(options.word_offsets).max(initial=1))
        self._columns = []
        for table in options.tables:
            if table.scores <= DIRECT:
                raise UsageError(
                    f"{table.path}: expected p(source | target) as first score and "
                    f"p(target | source) as third, found {table.scores} scores"
                )
            self._columns.append([options.fixed_column(table.name, c) for c in (INVERSE, DIRECT)])
            self._check_frequencies(len(self._columns) - 1)

    def _check_frequencies(self, table: int) -> None:
        """Check that a table's scores are its relative frequencies, up to smoothing."""
        counts = self._options.counts
        rows = np.flatnonzero((self._options.table == table) & (counts[:, JOINT] > 0))
        for column, total in zip(self._columns[table], (OF_TARGET, OF_SOURCE), strict=True):
            expected = np.log(counts[rows, JOINT] / counts[rows, total])
            difference = np.abs(self._options.layout.fixed[rows, column] - expected)
            if len(rows) and np.median(difference) > MOST_SMOOTHED:
                raise UsageError(
                    f"{self._options.tables[table].path}: expected p(source | target) as first "
                    "score and p(target | source) as third, found scores that its counts do not "
                    "give"
                )

    @contextmanager
    def without(self, sentence: int, weighted: Options, weights: Floats) -> Iterator[Options]:
        """Yield the options of a sentence without its own counts; the arrays are restored after.

        Args:
            sentence: its number.
            weighted: the options under the weights; changed in place until the context ends.
            weights: (all features,) the weights.
        """
        options, (number, *gains) = self._options, self._rest(sentence)
        values = options.layout.fixed
        before = values[number], weighted.fixed[number], weighted.estimate[number]
        for table, columns in enumerate(self._columns):
            mine = options.table[number] == table
            for column, gain in zip(columns, gains, strict=True):
                values[number[mine], column] += gain[mine]
                added = weights[options.layout.fixed_columns[column]] * gain[mine]
                weighted.fixed[number[mine]] += added
                weighted.estimate[number[mine]] += added
        try:
            yield options.only(number, weighted)
        finally:
            values[number], weighted.fixed[number], weighted.estimate[number] = before

    def _rest(self, sentence: int) -> tuple[Integers, Floats, Floats]:
        """Subtract the counts of a sentence.

        Returns:
            (n,) numbers of the options that remain, those of a source phrase together; (n,) changes
            of log p(source | target), and of log p(target | source).
        """
        phrases, times = np.unique(self._options.spans[sentence], return_counts=True)
        phrases, times = phrases[phrases >= 0], times[phrases >= 0]
        begin, end = self._options.offsets[phrases], self._options.offsets[phrases + 1]
        number = np.concatenate([np.arange(b, e) for b, e in zip(begin, end, strict=True)])
        phrase = np.repeat(np.arange(len(phrases)), end - begin)
        table = self._options.table[number]
        target, of_target = np.unique(self._options.target[number], return_inverse=True)
        written = self._occurrences(self._references[sentence], target)
        own = np.minimum(times[phrase], written[of_target])
        counts = self._options.counts[number]
        own = np.minimum(own, counts[:, JOINT])
        lost = {
            OF_SOURCE: _sums(own, table, phrase, len(phrases)),
            OF_TARGET: _sums(own, table, of_target, len(target)),
        }
        left = counts[:, JOINT] - own
        uncounted = (counts[:, JOINT] == 0) & (table >= 0)
        kept = (left > 0) | uncounted
        has_some = np.bincount(phrase, kept, len(phrases))[phrase] > 0
        kept |= (table < 0) & ~has_some  # a word without any phrase pair left is unknown
        gains = {}
        with np.errstate(divide="ignore", invalid="ignore"):
            for total in (OF_TARGET, OF_SOURCE):
                now = np.log(left / np.maximum(counts[:, total] - lost[total], left))
                gain = now - np.log(counts[:, JOINT] / counts[:, total])
                gains[total] = np.where(uncounted, 0.0, gain)
        return number[kept], gains[OF_TARGET][kept], gains[OF_SOURCE][kept]

    def _occurrences(self, reference: Sentence, targets: Integers) -> Integers:
        """Return how often target phrases, given by ascending numbers, occur in a reference."""
        numbers = [
            self._options.target_number(reference[first:last])
            for first in range(len(reference))
            for last in range(first + 1, min(first + self._longest, len(reference)) + 1)
        ]
        found = np.sort(np.array(numbers, dtype=np.int64))
        times: Integers = np.searchsorted(found, targets, "right") - np.searchsorted(found, targets)
        return times


def _sums(own: Floats, table: Integers, group: Integers, groups: int) -> Floats:
    """Return for each option the sum of `own` over the options of its table and group."""
    key = (table + 1) * groups + group
    sums: Floats = np.bincount(key, own)[key]
    return sums
