"""Phrase pairs that stand together by more than chance (Johnson et al. 2007).

Fisher's exact test says how likely it is that two phrases that have nothing to do with each other
stand in as many sentence pairs together, or in more, as these do; with the same counts as Moses'
`contrib/sigtest-filter/filter-pt.cpp`, which needs suffix arrays of SALM. Other than there, a word
that would lose all its translations keeps the likeliest one.

Memory: the table's distinct phrases, about 100 bytes each, and 8 bytes for each sentence in which
one stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moses_feature.moses.lines import LineReader, parallel_lines
from moses_feature.moses.phrase_table import (
    NUMBER,
    SCORES,
    SOURCE,
    TARGET,
    checked_fields,
    tokens,
)
from moses_feature.runtime.arrays import Flags, Floats, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.runtime.files import open_output

LEAST = 1e-12
"""-log p of phrases that stand together, at least: 0 is for those that never do."""
EPSILON = 0.001
"""How far from the threshold of pairs that are seen once, each of their phrases once, too."""
MORE, LESS = "a+e", "a-e"
"""Drop these pairs; keep them."""
LEAST_TOGETHER = 0.5
"""The least share of a table's pairs that stand together in the texts."""
LINES_TOGETHER = 1 << 16
DIRECT = 2
"""The place of p(target | source) among Moses' scores."""


@dataclass(frozen=True)
class Filtered:
    """What a filter has done.

    Attributes:
        kept, dropped: lines.
        words: of the kept ones, those that stay since their words would have no translation.
        apart: of the dropped ones, those whose phrases stand in no sentence pair together.
        threshold: the least -log p, natural, of a line that is kept.
    """

    kept: int
    dropped: int
    words: int
    apart: int
    threshold: float


class _CountedSide:
    """The phrases of one side of a table, and the sentences in which each stands."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._lengths: set[int] = set()

    def add(self, phrase: Sequence[bytes]) -> int:
        """Return the number of a phrase."""
        self._lengths.add(len(phrase))
        return self._numbers.setdefault(b" ".join(phrase), len(self._numbers))

    def find(self, sentences: Sequence[Sequence[bytes]]) -> tuple[Integers, Integers]:
        """Return where the sentences of each phrase begin (phrases + 1,), and all of them."""
        found: list[Integers] = []
        get = self._numbers.get
        for words in sentences:
            here = {
                number
                for length in self._lengths
                for first in range(len(words) - length + 1)
                if (number := get(b" ".join(words[first : first + length]))) is not None
            }
            found.append(np.fromiter(here, np.int64, len(here)))
        phrase = np.concatenate([np.zeros(0, dtype=np.int64), *found])
        sentence = np.repeat(np.arange(len(found)), [len(of) for of in found])
        order = np.argsort(phrase, kind="stable")
        counts = np.bincount(phrase, minlength=len(self._numbers))
        return np.concatenate([[0], np.cumsum(counts)]), sentence[order]


@compiled
def negative_log_p(together: int, source: int, target: int, sentences: int) -> float:
    """Return -log p, natural, of Fisher's exact test; 0 for phrases that never stand together.

    Args:
        together: sentence pairs that have both phrases.
        source: those that have the source phrase.
        target: those that have the target phrase.
        sentences: all of them.
    """
    a, b, c = together, source - together, target - together
    d = sentences - source - target + together
    if a == 0:
        return 0.0
    first = math.lgamma(1 + source) + math.lgamma(1 + target)
    first += math.lgamma(1 + sentences - source) + math.lgamma(1 + sentences - target)
    first -= math.lgamma(1 + sentences) + math.lgamma(1 + a) + math.lgamma(1 + b)
    first -= math.lgamma(1 + c) + math.lgamma(1 + d)
    total = share = 1.0
    for more in range(min(b, c)):
        share *= (b - more) * (c - more) / ((a + 1.0 + more) * (d + 1.0 + more))
        total += share
        if share < 1e-17 * total:
            break
    return max(-(first + math.log(total)), LEAST)


@compiled
def _tests(
    source: Integers,
    target: Integers,
    begins: tuple[Integers, Integers],
    sentences: tuple[Integers, Integers],
    count: int,
) -> Floats:
    """Return -log p (lines,) of lines, given the numbers of their phrases."""
    found = np.empty(len(source))
    for line in range(len(source)):
        one, one_end = begins[0][source[line]], begins[0][source[line] + 1]
        two, two_end = begins[1][target[line]], begins[1][target[line] + 1]
        of_source, of_target, together = one_end - one, two_end - two, 0
        while one < one_end and two < two_end:
            here, there = sentences[0][one], sentences[1][two]
            together += here == there
            one += here <= there
            two += there <= here
        found[line] = negative_log_p(together, of_source, of_target, count)
    return found


def threshold_of(significance: str, sentences: int) -> float:
    """Return the least -log p of pairs to keep.

    Args:
        significance: `a+e`, `a-e` or -log p itself, natural.
        sentences: the sentence pairs of the text.

    Raises:
        UsageError: it is none of them.
    """
    once = math.log(max(sentences, 1))  # of 1, 1, 1: p is 1 / sentences
    if significance in (MORE, LESS):
        return once + (EPSILON if significance == MORE else -EPSILON)
    if not NUMBER.fullmatch(significance.encode()) or not 0 <= float(significance) < math.inf:
        raise UsageError(f"significance: expected a+e, a-e or a number, found {significance}")
    return float(significance)


def filter_table(
    table: str,
    source: str,
    target: str,
    significance: str,
    output: Path,
    report: Callable[[str, float | None], None] = lambda *_: None,
) -> Filtered:
    """Write the lines of a table whose phrases belong together; all else of a line stays.

    Args:
        table: a phrase table; it is read twice.
        source: its source text, tokenised as the table is.
        target: its target text.
        significance: see `threshold_of`.
        output: the new table.
        report: called with what is being done and the share that is done.

    Raises:
        FormatError: a bad line, or texts of different lengths.
        MosesFeatureError: the table was extracted from another text.
        UsageError: a bad significance.
    """
    threshold_of(significance, 1)
    if Path(table).exists() and not Path(table).is_file():
        raise UsageError(f"{table}: expected a file, which is read twice")
    sides = _CountedSide(), _CountedSide()
    numbers: list[list[int]] = [[], []]
    of_words: dict[int, tuple[float, int]] = {}
    with LineReader(table) as reader:
        for line, (phrases, scores) in enumerate(_lines(reader)):
            for side, of_side, phrase in zip(sides, numbers, phrases, strict=True):
                of_side.append(side.add(phrase))
            if len(phrases[0]) == 1:
                found = _likelihood(scores), -line
                word = numbers[0][-1]
                of_words[word] = max(of_words.get(word, found), found)
            if reader.line_number % LINES_TOGETHER == 0:
                report("reading the table", reader.fraction())
    with LineReader(source) as one, LineReader(target) as two:
        pairs = [tuple(map(tokens, lines)) for lines in parallel_lines([one, two], "both texts")]
    if not pairs:
        raise MosesFeatureError(f"{source}: expected sentence pairs, found none")
    report("finding its phrases in the texts", 0.0)
    read, written = zip(*pairs, strict=True)
    of_source, of_target = sides[0].find(read), sides[1].find(written)
    begins, sentences = (of_source[0], of_target[0]), (of_source[1], of_target[1])
    source_of, target_of = (np.array(of_side, dtype=np.int64) for of_side in numbers)
    if not len(source_of):
        raise MosesFeatureError(f"{table}: expected a phrase table, found an empty file")
    log_ps = _tests(source_of, target_of, begins, sentences, len(pairs))
    apart = int(np.count_nonzero(log_ps == 0))
    if apart > (1 - LEAST_TOGETHER) * len(log_ps):
        raise MosesFeatureError(
            f"{table}: expected the phrase table of {source} and {target}, found that the phrases "
            f"of {apart:,} of {len(log_ps):,} lines never stand together there"
        )
    threshold = threshold_of(significance, len(pairs))
    kept = log_ps >= threshold
    lost = np.setdiff1d(np.fromiter(of_words, np.int64), source_of[kept]).tolist()
    kept[[-of_words[word][1] for word in lost]] = True
    _write(table, kept, output, report)
    count = int(np.count_nonzero(kept))
    return Filtered(count, len(kept) - count, len(lost), apart, threshold)


Phrases = tuple[list[bytes], list[bytes]]


def _lines(reader: LineReader) -> Iterator[tuple[Phrases, list[bytes]]]:
    """Yield the phrases and the scores of each line."""
    for line in reader:
        fields = checked_fields(line, reader.path, reader.line_number)
        if not (fields[SOURCE].strip() and fields[TARGET].strip()):
            raise FormatError(reader.path, "two phrases", "an empty one", reader.line_number)
        yield (tokens(fields[SOURCE]), tokens(fields[TARGET])), fields[SCORES].split()


def _likelihood(scores: list[bytes]) -> float:
    """Return p(target | source), the third of Moses' scores, or the first of fewer."""
    return float(scores[DIRECT] if len(scores) > DIRECT else scores[0])


def _write(
    table: str, kept: Flags, output: Path, report: Callable[[str, float | None], None]
) -> None:
    with LineReader(table) as reader, open_output(output) as file:
        keep = iter(kept.tolist())
        for line in reader:
            if next(keep, False):
                file.write(line)
            if reader.line_number % LINES_TOGETHER == 0:
                report("writing", reader.fraction())
        if reader.line_number != len(kept):
            found = f"{reader.line_number:,} lines"
            raise MosesFeatureError(f"{table}: expected {len(kept):,} lines again, found {found}")
