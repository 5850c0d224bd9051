"""An n-gram language model: interpolated modified Kneser-Ney, as KenLM's `lmplz` estimates it.

Chen and Goodman 1998; Heafield et al. 2013. Below the highest order, an n-gram counts as often as
it has different words before it; one that begins a sentence has none, and counts as often as it
occurs. The words of the text are in memory; n-grams are on disk, and go through memory in parts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moses_feature.building.bitext import CONTROL, Ids, NumberedText, check_words
from moses_feature.building.ngrams import Grams, grams_of
from moses_feature.building.table_text import Numbers, Pool, TableSide, arpa_lines
from moses_feature.moses.language_model import load_kenlm
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.arrays import Flags, Floats
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.disk_arrays import DiskArray, filled
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import open_output

logger = logging.getLogger(__name__)

BEGIN, END, UNKNOWN = b"<s>", b"</s>", b"<unk>"
FALLBACK = (0.0, 0.5, 1.0, 1.5)
"""Discounts of n-grams that count 0, 1, 2, and 3 times or more, for texts that are too small."""
TOGETHER = 1 << 18
"""N-grams that go through memory together."""


@dataclass(frozen=True)
class NgramsOfOrder:
    """The n-grams of an order.

    Attributes:
        grams: the n-grams.
        pruned: those that occur so often or less are not in the model.
        p: (n,) p(last word | the words before it).
        back_off: (n,) log10 of the weight of shorter contexts behind it, 0 if it is no context.
    """

    grams: Grams
    pruned: int
    p: Floats
    back_off: Floats

    def kept(self, rows: slice) -> Flags:
        """Return which of some n-grams are in the model."""
        flags: Flags = self.grams.count[rows] > self.pruned
        return flags


@dataclass(frozen=True)
class LanguageModel:
    """A language model.

    Attributes:
        text: the text, its sentences with their marks.
        levels: the n-grams of each order.
        unknown: log10 p of an unknown word, if the text has none.
    """

    text: NumberedText
    levels: list[NgramsOfOrder]
    unknown: float

    def arpa(self) -> Iterator[bytes]:
        """Yield the model as an ARPA file, in parts."""
        sizes = [sum(int(of.kept(rows).sum()) for rows in _slices(of.grams)) for of in self.levels]
        counted = UNKNOWN in self.text.words
        sizes[0] += not counted
        yield b"\\data\\\n"
        for order, size in enumerate(sizes, 1):
            yield b"ngram %d=%d\n" % (order, size)
        words = Pool.of(self.text.words)
        for order, level in enumerate(self.levels, 1):
            yield b"\n\\%d-grams:\n" % order
            if order == 1 and not counted:
                yield b"%.7g\t%b\t0\n" % (self.unknown, UNKNOWN)
            for rows in _slices(level.grams):
                kept = level.kept(rows)
                columns = [np.log10(level.p[rows][kept])]
                if order == 1:
                    columns[0][level.grams.at[0]] = 0.0  # BEGIN, which begins each sentence
                if order < len(self.levels):
                    columns.append(level.back_off[rows][kept])
                place = level.grams.place[rows][kept]
                side = TableSide(
                    words, self.text.ids, place, np.full(len(place), order, dtype=np.int8)
                )
                yield arpa_lines(side, Numbers.of(columns, b"%.7g"))
        yield b"\n\\end\\\n"


def estimate(
    sentences: Iterable[Sequence[bytes]],
    order: int,
    prune: Sequence[int] = (),
    vocabulary: Set[bytes] | None = None,
    folder: Path | None = None,
) -> LanguageModel:
    """Estimate a model.

    Args:
        sentences: words without marks.
        order: words of an n-gram, at most; 2 or more.
        prune: n-grams of order 1, 2, … that occur so often or less are left out; the last number
            counts for all higher orders.
        vocabulary: all other words count as unknown ones; None for no others.
        folder: where n-grams are kept as long as the model is used; None for memory.
    """
    if vocabulary is not None:
        known = vocabulary
        sentences = ([w if w in known else UNKNOWN for w in of] for of in sentences)
    text = NumberedText.of_sentences([BEGIN, *sentence, END] for sentence in sentences)
    levels: list[NgramsOfOrder] = []
    grams = list(grams_of(text, order, folder))
    words = len(grams[0].place) - (UNKNOWN in text.words)  # without BEGIN, with UNKNOWN
    lower, root = np.array([1 / words]), np.zeros(1)
    begins = grams[0].at[:1] + np.arange(2)  # the first and the last of the n-grams with BEGIN
    for number, of in enumerate(grams):
        if number:
            begins = np.searchsorted(of.prefix, begins.astype(np.int32))
        begin = slice(*begins.tolist())
        counts = of.count
        if number + 1 < len(grams):
            counts = _words_before(of, grams[number + 1], folder)
            counts[begin] = of.count[begin] if number else 0
        pruned = prune[min(number, len(prune) - 1)] if prune and number else 0
        back_off = levels[-1].back_off if levels else root
        p = _interpolated(
            of, counts, _discounts(counts, number + 1), pruned, lower, back_off, folder
        )
        levels.append(NgramsOfOrder(of, pruned, p, filled(0, len(p), np.float64, folder)))
        lower = p
    return LanguageModel(text, levels, float(root[0] - np.log10(words)))


def _words_before(grams: Grams, longer: Grams, folder: Path | None) -> Ids:
    """Return how many different words occur before each n-gram."""
    counts = filled(0, len(grams.place), np.int32, folder)
    _count(longer.suffix, counts)
    return counts


@compiled
def _count(numbers: Ids, counts: Ids) -> None:
    for number in numbers:
        counts[number] += 1


def _interpolated(
    grams: Grams,
    counts: Ids,
    discounts: Floats,
    pruned: int,
    lower: Floats,
    back_off: Floats,
    folder: Path | None,
) -> Floats:
    """Return the probabilities (n,) of the last words of n-grams.

    Args:
        grams: the n-grams.
        counts: (n,) how often each counts.
        discounts: (4,) of n-grams that count 0, 1, 2, and 3 times or more.
        pruned: those that occur so often or less are left out; their share goes to shorter ones.
        lower: the probabilities of the n-grams that are shorter by a word.
        back_off: their weights; those of contexts are written to it.
        folder: where the result is kept.
    """
    p = DiskArray(np.float64, folder)
    for rows in _slices(grams):
        count, context = counts[rows], grams.prefix[rows]
        first = int(context[0])
        context = context - first
        discount = np.minimum(discounts[np.minimum(count, 3)], count)
        total = np.bincount(context, weights=count)
        lost = np.bincount(context, weights=np.where(grams.count[rows] > pruned, discount, count))
        left = lost / total.clip(1)
        kept = (count - discount) / total.clip(1)[context]
        p.append(kept + left[context] * lower[grams.suffix[rows]])
        contexts = np.flatnonzero(total)
        back_off[first + contexts] = np.log10(left[contexts])
    return p.array()


def _slices(grams: Grams) -> Iterator[slice]:
    """Yield the n-grams in parts, with all that have the same context in one."""
    first = 0
    while first < len(grams.prefix):
        last = min(first + TOGETHER, len(grams.prefix)) - 1
        end = int(np.searchsorted(grams.prefix, grams.prefix[last], side="right"))
        yield slice(first, end)
        first = end


def _discounts(counts: Ids, order: int) -> Floats:
    """Return the discounts of n-grams that count 0, 1, 2, and 3 times or more."""
    parts = np.array_split(counts, 1 + len(counts) // TOGETHER)
    found = np.sum([np.bincount(np.minimum(part, 5), minlength=6) for part in parts], axis=0)
    once, twice, thrice, often = found[1:5].tolist()
    if min(once, twice, thrice) > 0:
        y = once / (once + 2 * twice)
        discounts = (
            0.0,
            1 - 2 * y * twice / once,
            2 - 3 * y * thrice / twice,
            3 - 4 * y * often / thrice,
        )
        if all(0 <= d <= count for count, d in enumerate(discounts)):
            return np.array(discounts)
    logger.warning(
        "too few %d-grams that occur once, twice and three times: discounts of 0.5, 1 and 1.5 in "
        "place of those of the text",
        order,
    )
    return np.array(FALLBACK)


def write_model(
    path: Path, sentences: Iterable[list[bytes]], order: int, prune: Sequence[int] = ()
) -> None:
    """Estimate a model, and write it as an ARPA file that KenLM can read."""
    model = estimate(sentences, order, prune, folder=path.parent)
    with open_output(path) as file:
        file.writelines(model.arpa())
    try:
        load_kenlm(path)
    except MosesFeatureError:
        path.unlink()
        raise


def sentences_of(path: str) -> Iterator[list[bytes]]:
    """Yield the words of each line of a text for the language model."""
    with LineReader(path) as reader:
        for line in reader:
            check_words(line, reader, CONTROL)
            yield tokens(line)
