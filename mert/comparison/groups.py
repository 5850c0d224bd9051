"""The test set in groups: the metric of sentences by length, words by frequency."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from mert.comparison.results import Comparison
from mert.tuning.corpus import Corpus
from moses_feature.metrics.metric import corpus_quality
from moses_feature.moses.nbest_lists import first_translations
from moses_feature.report.page import Section, table
from moses_feature.runtime.arrays import Floats, Integers

Words = tuple[bytes, ...]

LENGTHS = (1, 6, 11, 16, 21, 31, 41)
FREQUENCIES = (0, 1, 2, 5, 20, 100)


def group_sections(comparison: Comparison, dev: Corpus | None, test: Corpus) -> Iterator[Section]:
    """Yield the metric by length, and words by their frequency in the development set."""
    yield Section(
        f"{comparison.metric.label} by length",
        "Of the sentences of the test set that are so long, mean over the runs. Groups of "
        "a few sentences say little.",
        quality_table("source words", [len(of) for of in test.sentences], LENGTHS, comparison),
    )
    if dev is not None:
        yield _frequencies(comparison, dev, test)


def labels_of(bounds: Sequence[float]) -> list[str]:
    """Return the names of groups that begin at these bounds, the last one without an end."""
    whole = all(isinstance(bound, int) for bound in bounds)
    ends = [end - 1 if whole else end for end in bounds[1:]]
    labels = [
        f"{first:g}" if first == end else f"{first:g}–{end:g}"
        for first, end in zip(bounds, ends, strict=False)
    ]
    return [*labels, f"{bounds[-1]:g}+"]


def by_value(
    values: Sequence[float], statistics: Sequence[np.ndarray], bounds: Sequence[float]
) -> list[tuple[int, Integers]]:
    """Return the number of sentences in each group, and their summed statistics.

    Args:
        values: what the sentences are grouped by.
        statistics: (sentences, 9) of each run.
        bounds: the values at which a group begins, ascending.

    Returns:
        For each group, its size and the sums (runs, 9).
    """
    groups = np.searchsorted(bounds, values, side="right") - 1
    found = []
    for group in range(len(bounds)):
        chosen = groups == group
        found.append((int(chosen.sum()), np.stack([of[chosen].sum(axis=0) for of in statistics])))
    return found


def quality_table(
    what: str, values: Sequence[float], bounds: Sequence[float], comparison: Comparison
) -> Markup:
    """Return a table of the metric of each system, by a value of the sentences.

    Args:
        what: the head of the first column.
        values: of the sentences.
        bounds: the values at which a group begins, ascending.
        comparison: the systems.
    """
    systems, metric = comparison.systems, comparison.metric
    groups = [
        by_value(values, [run.test_statistics for run in system.runs], bounds) for system in systems
    ]
    rows = [(what, "sentences", *(system.name for system in systems))]
    for label, of_systems in zip(labels_of(bounds), zip(*groups, strict=True), strict=True):
        if size := of_systems[0][0]:
            means = [
                metric.shown(float(np.mean([corpus_quality(row) for row in sums])))
                for _, sums in of_systems
            ]
            rows.append((label, f"{size:,}", *(f"{mean:.2f}" for mean in means)))
    return table(rows)


def _frequencies(comparison: Comparison, dev: Corpus, test: Corpus) -> Section:
    frequency = Counter(
        word for references in dev.references for reference in references for word in reference
    )
    columns, sizes = [], np.zeros(len(FREQUENCIES), np.int64)
    for system in comparison.systems:
        found = []
        for run in system.runs:
            words = first_translations(run.test_lists, len(test))
            sizes, f1 = words_found(words, test.references, frequency, FREQUENCIES)
            found.append(f1)
        columns.append(np.mean(found, axis=0))
    rows = [("times in dev", "words", *(system.name for system in comparison.systems))]
    for group, label in enumerate(labels_of(FREQUENCIES)):
        if sizes[group]:
            rows.append(
                (label, f"{sizes[group]:,}", *(f"{column[group]:.2f}" for column in columns))
            )
    return Section(
        "Rare and frequent words",
        "F1 of the words of the translations, mean over the runs: of a hundred words that "
        "a system writes or should have written, so many are right. Words are grouped by how "
        "often the references of the development set have them; 0 are those that it has not.",
        table(rows),
    )


def words_found(
    translations: Sequence[Words],
    references: Sequence[Sequence[Words]],
    frequency: Mapping[bytes, int],
    bounds: Sequence[int],
) -> tuple[Integers, Floats]:
    """Return how well words are translated, by their frequency.

    Args:
        translations: of each sentence.
        references: of each sentence, one or several.
        frequency: of the words; 0 for words not in it.
        bounds: the frequencies at which a group begins, ascending; the first is 0.

    Returns:
        Words of the references (groups,): of several, the reference that has a word most often;
        and F1 (groups,), 0 to 100, of the words of the translations; nan for empty groups.
    """
    right, written, wanted = (np.zeros(len(bounds), np.int64) for _ in range(3))
    for words, of_sentence in zip(translations, references, strict=True):
        for word in {*words, *(w for reference in of_sentence for w in reference)}:
            group = bisect_right(bounds, frequency.get(word, 0)) - 1
            most = max(reference.count(word) for reference in of_sentence)
            wanted[group] += most
            written[group] += words.count(word)
            right[group] += min(words.count(word), most)
    with np.errstate(invalid="ignore"):
        return wanted, 200 * right / (written + wanted)
