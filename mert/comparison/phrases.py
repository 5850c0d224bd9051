"""Which phrase pairs the systems use for the test set, and how many of their words are right."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from markupsafe import Markup

from mert.comparison.groups import FREQUENCIES, Words, labels_of, quality_table
from mert.comparison.results import Comparison
from mert.tuning.corpus import Corpus
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import TABLE_CLASS
from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_lists import first_lines
from moses_feature.moses.phrase_table import COUNTS, NUMBER, SEPARATOR, TARGET, tokens
from moses_feature.report.page import Section, table
from moses_feature.runtime.files import with_or_without_gz

Pair = tuple[Words, Words]

LENGTHS = (1, 2, 3, 4, 5, 6)
MEAN_LENGTHS = (0.0, 1.5, 2.0, 2.5, 3.0, 4.0)
JOINT_COUNT = 2
"""The place of a pair's count in the counts of a line."""


@dataclass(frozen=True)
class UsedPhrase:
    """A phrase pair in a translation.

    Attributes:
        pair: source and target words.
        right: the number of its target words that the reference has, too.
    """

    pair: Pair
    right: int


def used_phrases(
    lists: Path, sentences: Sequence[Words], references: Sequence[Sequence[Words]]
) -> list[list[UsedPhrase]]:
    """Return the phrase pairs of the first translation of each sentence.

    A word is right as often as the reference has it that has it most often, the first ones in a
    translation first.

    Args:
        lists: n-best lists.
        sentences: the source text.
        references: of each sentence, one or several.

    Returns:
        For each sentence; empty where the lists do not tell phrases.

    Raises:
        FormatError: a line that is not one of an n-best list, or whose phrases do not match the
            sentence.
    """
    found: list[list[UsedPhrase]] = [[] for _ in sentences]
    for line in first_lines(lists, len(sentences)):
        source = sentences[line.sentence]
        left: Counter[bytes] = Counter()
        for reference in references[line.sentence]:
            left |= Counter(reference)
        for place in line.phrases(len(source)):
            target = tuple(line.words[place.target : place.target_end])
            right = 0
            for word in target:
                right += left[word] > 0
                left[word] -= 1
            pair = source[place.source : place.source_end], target
            found[line.sentence].append(UsedPhrase(pair, right))
    return found


def joint_counts(tables: Sequence[str], wanted: Set[Pair]) -> dict[Pair, float]:
    """Return how often the text of phrase tables has had phrase pairs, once at least.

    Args:
        tables: text tables; the one with the most counts.
        wanted: the pairs; those that no table has, or has no count of, are left out.
    """
    sources = {source for source, _ in wanted}
    found: dict[Pair, float] = {}
    for path in tables:
        with LineReader(path) as reader:
            before, source = None, None
            for line in reader:
                field = line.partition(SEPARATOR)[0]
                if field != before:
                    before, source = field, tuple(tokens(field))
                if source not in sources:
                    continue
                fields = line.split(SEPARATOR)
                pair = source, tuple(tokens(fields[TARGET]))
                counts = tokens(fields[COUNTS]) if len(fields) > COUNTS else []
                count = counts[JOINT_COUNT] if len(counts) > JOINT_COUNT else b""
                if pair in wanted and NUMBER.fullmatch(count):
                    found[pair] = max(found.get(pair, 1.0), float(count))
    return found


def text_tables(ini: MosesIni) -> list[str]:
    """Return the phrase tables of a system; none unless all are text."""
    tables = ini.tables()
    if any(of.kind != TABLE_CLASS for of in tables):
        return []
    return [str(with_or_without_gz(of.path)) for of in tables]


def phrase_sections(
    comparison: Comparison, test: Corpus, tables: Mapping[str, Sequence[str]]
) -> Iterator[Section]:
    """Yield what phrase pairs the systems use, and which sentences they translate better.

    Args:
        comparison: the systems; those whose lists do not tell phrases are left out.
        test: the test text.
        tables: the text tables of each system.
    """
    used = {
        system.name: [used_phrases(r.test_lists, test.sentences, test.references) for r in runs]
        for system in comparison.systems
        if (runs := [run for run in system.runs if run.weights])
    }
    used = {name: runs for name, runs in used.items() if any(map(any, runs))}
    if not used:
        return
    how = (
        "Mean over the runs; right are those of a hundred of their words that the reference has, "
        "too, wherever it has them."
    )
    yield Section(
        "Long and short phrases",
        f"The phrases of the translations, by the number of their source words. {how}",
        _phrases("source words", used, LENGTHS, lambda _, pair: len(pair[0])),
    )
    wanted = {of.pair for runs in used.values() for of in _all(runs)}
    of_tables = {paths: joint_counts(paths, wanted) for paths in {*map(tuple, tables.values())}}
    counts = {name: of_tables[tuple(tables[name])] for name in used}
    if all(tables[name] for name in used) and any(counts.values()):
        yield Section(
            "Rare and frequent phrases",
            "The same by how often the text of the table has had the pair of phrases; 0 are words "
            f"that no table has, which are copied. {how}",
            _phrases("seen", used, FREQUENCIES, lambda name, pair: counts[name].get(pair, 0)),
        )
    baseline = comparison.systems[0].name
    if baseline in used:
        yield _by_mean_length(comparison, used[baseline][0])


Used = list[list[UsedPhrase]]


def _all(runs: Sequence[Used]) -> Iterator[UsedPhrase]:
    return chain.from_iterable(chain.from_iterable(runs))


def _phrases(
    what: str,
    used: Mapping[str, Sequence[Used]],
    bounds: Sequence[float],
    value: Callable[[str, Pair], float],
) -> Markup:
    """Return a table of the number of phrases of each group, and the share of right words.

    Args:
        what: the head of the first column.
        used: the phrases of the runs of each system.
        bounds: where groups begin.
        value: what phrases are grouped by, of a system and a pair.
    """
    labels = labels_of(bounds)
    heads, columns = [what], [labels]
    for name, runs in used.items():
        phrases, words, right = np.zeros((3, len(bounds)))
        for of in _all(runs):
            group = bisect_right(bounds, value(name, of.pair)) - 1
            phrases[group] += 1
            words[group] += len(of.pair[1])
            right[group] += of.right
        heads += [f"{name}: phrases", "right"]
        columns.append([f"{count / len(runs):,.0f}" for count in phrases])
        shares = 100 * np.divide(right, words, out=np.zeros_like(right), where=words > 0)
        columns.append(
            [f"{share:.1f}" if n else "" for share, n in zip(shares, words, strict=True)]
        )
    return table([tuple(heads), *zip(*columns, strict=True)])


def _by_mean_length(comparison: Comparison, used: Used) -> Section:
    """Return the metric of the sentences, by the mean length of the baseline's phrases."""
    means = [
        float(np.mean([len(of.pair[0]) for of in phrases])) if phrases else 0.0 for phrases in used
    ]
    baseline = comparison.systems[0].name
    return Section(
        f"{comparison.metric.label} by how well the table knows the sentence",
        f"Sentences by the mean number of source words of {baseline}'s phrases (its first run): "
        "where a document was in the training text, or one much like it, phrases are long. Mean "
        "over the runs; groups of a few sentences say little.",
        quality_table("words a phrase", means, MEAN_LENGTHS, comparison),
    )
