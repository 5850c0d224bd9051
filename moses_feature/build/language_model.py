"""An n-gram language model: interpolated modified Kneser-Ney, as KenLM's `lmplz` estimates it.

Chen and Goodman 1998; Heafield et al. 2013. Below the highest order, an n-gram counts as often as
it has different words before it; one that begins a sentence has none, and counts as often as it
occurs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moses_feature.build.bitext import Text
from moses_feature.build.ngrams import NONE, Grams, grams_of
from moses_feature.build.table_text import Numbers, Pool, Side, arpa_lines
from moses_feature.runtime.arrays import Flags, Floats, Integers

logger = logging.getLogger(__name__)

BEGIN, END, UNKNOWN = b"<s>", b"</s>", b"<unk>"
FALLBACK = (0.0, 0.5, 1.0, 1.5)
"""Discounts of n-grams that count 0, 1, 2, and 3 times or more, for texts that are too small."""
LINES_TOGETHER = 1 << 20


@dataclass(frozen=True)
class Level:
    """The n-grams of an order.

    Attributes:
        grams: the n-grams.
        kept: (n,) whether each is in the model.
        log_prob: (n,) log10 p(last word | the words before it).
        back_off: (n,) log10 of the weight of shorter contexts behind it, 0 if it is no context.
    """

    grams: Grams
    kept: Flags
    log_prob: Floats
    back_off: Floats


@dataclass(frozen=True)
class LanguageModel:
    """A language model.

    Attributes:
        text: the text, its sentences with their marks.
        levels: the n-grams of each order.
        unknown: log10 p of an unknown word, if the text has none.
    """

    text: Text
    levels: list[Level]
    unknown: float

    def arpa(self) -> Iterator[bytes]:
        """Yield the model as an ARPA file, in parts."""
        sizes = [int(level.kept.sum()) for level in self.levels]
        counted = UNKNOWN in self.text.words
        sizes[0] += not counted
        yield b"\\data\\\n"
        for order, size in enumerate(sizes, 1):
            yield b"ngram %d=%d\n" % (order, size)
        for order, level in enumerate(self.levels, 1):
            yield b"\n\\%d-grams:\n" % order
            if order == 1 and not counted:
                yield b"%.7g\t%b\t0\n" % (self.unknown, UNKNOWN)
            length = np.full(len(level.kept), order, dtype=np.int8)
            side = Side(Pool.of(self.text.words), self.text.ids, level.grams.place, length)
            kept = np.flatnonzero(level.kept)
            columns = [level.log_prob]
            if order < len(self.levels):
                columns.append(level.back_off)
            for first in range(0, len(kept), LINES_TOGETHER):
                rows = kept[first : first + LINES_TOGETHER]
                numbers = Numbers.of([column[rows] for column in columns], b"%.7g")
                yield arpa_lines(side, rows, numbers)
        yield b"\n\\end\\\n"


def estimate(
    sentences: Iterable[Sequence[bytes]],
    order: int,
    prune: Sequence[int] = (),
    vocabulary: Set[bytes] | None = None,
) -> LanguageModel:
    """Estimate a model.

    Args:
        sentences: words without marks.
        order: words of an n-gram, at most.
        prune: n-grams of order 1, 2, … that occur so often or less are left out; the last number
            counts for all higher orders.
        vocabulary: all other words count as unknown ones; None for no others.
    """
    if vocabulary is not None:
        known = vocabulary
        sentences = ([w if w in known else UNKNOWN for w in of] for of in sentences)
    text = Text.of_sentences([BEGIN, *sentence, END] for sentence in sentences)
    grams = grams_of(text, order)
    begin = text.words.index(BEGIN)
    levels: list[Level] = []
    raw = [np.bincount(of.at[of.at != NONE], minlength=len(of.place)) for of in grams]
    words = len(grams[0].place) - (UNKNOWN in text.words)  # without BEGIN, with UNKNOWN
    below = np.full(len(grams[0].place), 1 / words)
    unknown = 0.0
    for number, of in enumerate(grams):
        counts = raw[number]
        begins = text.ids[of.place] == begin
        if number + 1 < len(grams):
            longer = grams[number + 1]
            counts = np.bincount(of.at[longer.place + 1], minlength=len(of.place))
            counts = np.where(begins, raw[number], counts)
        if number == 0:
            counts = np.where(begins, 0, counts)
        discounts = _discounts(counts, number + 1)
        threshold = prune[min(number, len(prune) - 1)] if prune else 0
        kept = (raw[number] > threshold) | (number == 0)
        lower = below if number == 0 else below[grams[number - 1].at[of.place + 1]]
        of_context = of.prefix if number else np.zeros(len(of.place), dtype=np.int64)
        total = np.bincount(of_context, weights=counts)
        discount = np.minimum(discounts[np.minimum(counts, 3)], counts)
        left = np.bincount(of_context, weights=np.where(kept, discount, counts)) / total.clip(1)
        p = (counts - discount) / total.clip(1)[of_context] + left[of_context] * lower
        if number == 0:
            unknown = float(np.log10(left[0] * lower[0]))
        else:
            levels[-1] = _with_back_off(levels[-1], left, total)
        with np.errstate(divide="ignore"):
            log_prob = np.log10(p)
        if number == 0:
            log_prob[begins] = 0.0
        levels.append(Level(of, kept, log_prob, np.zeros(len(p))))
        below = p
    return LanguageModel(text, levels, unknown)


def _with_back_off(level: Level, left: Floats, total: NDArray[Any]) -> Level:
    """Return n-grams with the weights of what is left to shorter contexts behind them."""
    back_off = np.zeros(len(level.log_prob))
    is_context = np.flatnonzero(total)
    back_off[is_context] = np.log10(left[is_context])
    return Level(level.grams, level.kept, level.log_prob, back_off)


def _discounts(counts: Integers, order: int) -> Floats:
    """Return the discounts of n-grams that count 0, 1, 2, and 3 times or more."""
    once, twice, thrice, often = (int((counts == number).sum()) for number in range(1, 5))
    if min(once, twice, thrice) > 0:
        y = once / (once + 2 * twice)
        found = (
            0.0,
            1 - 2 * y * twice / once,
            2 - 3 * y * thrice / twice,
            3 - 4 * y * often / thrice,
        )
        if all(0 <= d <= count for count, d in enumerate(found)):
            return np.array(found)
    logger.warning(
        "too few %d-grams that occur once, twice and three times: discounts of 0.5, 1 and 1.5 in "
        "place of those of the text",
        order,
    )
    return np.array(FALLBACK)
