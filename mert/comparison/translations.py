"""What systems made of the test set: their lists, read again, and how they differ."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from moses_feature.metrics.metric import sentence_quality
from moses_feature.moses.alignments import PhrasePlace, read_segmentation
from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest import EXPECTED, VALUES, NbestLine, labelled_values
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import FormatError, shown

Words = tuple[bytes, ...]


@dataclass(frozen=True)
class Translation:
    """The first translation of a sentence.

    Attributes:
        words: its words.
        phrases: of which it was made; none where the list does not say.
        values: of the features by name, such as `LM0_0`, weighted.
    """

    words: Words
    phrases: tuple[PhrasePlace, ...]
    values: Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """A sentence that two systems translate differently.

    Attributes:
        sentence: its number, from 0.
        before, after: the translations of the baseline and of the system.
        gain: of the quality of the sentence, 0 to 100.
        listed: translations in the system's list.
        decided: by how much the weighted value of each feature of the system is higher for its
            own translation than for that of the baseline, most first; None where the latter is
            not in the system's list.
    """

    sentence: int
    before: Translation
    after: Translation
    gain: float
    listed: int
    decided: tuple[tuple[str, float], ...] | None


def changes(
    before: tuple[Path, Mapping[str, float], np.ndarray],
    after: tuple[Path, Mapping[str, float], np.ndarray],
    sentences: Sequence[Words],
) -> Iterator[Change]:
    """Yield the sentences that two systems translate differently.

    Args:
        before: n-best lists, weights of the features by name, statistics of a baseline.
        after: the same of a system.
        sentences: the source text.

    Raises:
        FormatError: a line that is not one of an n-best list, or its phrases are not those of the
            sentence.
    """
    gains = 100 * (sentence_quality(after[2]) - sentence_quality(before[2]))
    theirs = {number: next(lists) for number, lists in _lists(before[0], before[1], sentences)}
    for number, lists in _lists(after[0], after[1], sentences):
        mine, old = next(lists), theirs.get(number)
        if old is None or old.words == mine.words:
            continue
        rest = list(lists)
        other = next((t for t in rest if t.words == old.words), None)
        decided = None
        if other is not None:
            said = {name: mine.values[name] - other.values[name] for name in mine.values}
            decided = tuple(sorted(said.items(), key=lambda of: -of[1]))
        yield Change(number, old, mine, float(gains[number]), 1 + len(rest), decided)


def _lists(
    path: Path, weights: Mapping[str, float], sentences: Sequence[Words]
) -> Iterator[tuple[int, Iterator[Translation]]]:
    """Yield the list of each sentence, with its number."""

    def lines() -> Iterator[tuple[int, bytes, int]]:
        with LineReader(path) as reader:
            for line in reader:
                yield int(line.partition(b" ")[0]), line, reader.line_number

    for number, of_sentence in groupby(lines(), key=lambda of: of[0]):
        yield (
            number,
            (
                _translation(line, weights, sentences[number], path, line_number)
                for _, line, line_number in of_sentence
            ),
        )


def _translation(
    line: bytes, weights: Mapping[str, float], source: Words, path: Path, line_number: int
) -> Translation:
    try:
        parsed = NbestLine.parse(line)
        by_name = labelled_values(parsed.fields[VALUES])
    except ValueError:
        raise FormatError(path, EXPECTED, shown(line), line_number) from None
    values = {
        (of := f"{name}_{place}"): weights[of] * value
        for name, of_name in by_name.items()
        for place, value in enumerate(of_name)
    }
    phrases: list[PhrasePlace] = []
    if parsed.segmentation is not None:
        try:
            phrases = read_segmentation(parsed.segmentation, len(source), len(parsed.words))
        except ValueError as error:
            expected, there = error.args
            raise FormatError(path, expected, there, line_number) from None
    return Translation(tuple(parsed.words), tuple(phrases), values)


def by_length(
    sentences: Sequence[Words], statistics: Sequence[np.ndarray], bounds: Sequence[int]
) -> list[tuple[int, Integers]]:
    """Return how many sentences are of each length, and the sums of their statistics.

    Args:
        sentences: the source text.
        statistics: (sentences, 9) of each run.
        bounds: the lengths at which a group begins, ascending; the first is 0.

    Returns:
        for each group its size, and the sums (runs, 9).
    """
    groups = np.searchsorted(bounds, [len(s) for s in sentences], side="right") - 1
    found = []
    for group in range(len(bounds)):
        chosen = groups == group
        found.append((int(chosen.sum()), np.stack([of[chosen].sum(axis=0) for of in statistics])))
    return found


def words_found(
    translations: Sequence[Words],
    references: Sequence[Sequence[Words]],
    frequency: Mapping[bytes, int],
    bounds: Sequence[int],
) -> tuple[Integers, Floats]:
    """Return how well words are translated, by how frequent they are.

    Args:
        translations: of each sentence.
        references: of each sentence, one or several.
        frequency: of the words; 0 for those that are not there.
        bounds: the frequencies at which a group begins, ascending; the first is 0.

    Returns:
        words of the references (groups,), of several that which has a word most often; and F1
        (groups,), 0 to 100, of the words of the translations; nan where there are none.
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
