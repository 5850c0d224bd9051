"""The first translations of n-best lists: those of the decoder, and those after rescoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moses_feature.metrics.bleu import BLEU
from moses_feature.moses.lines import read_parallel
from moses_feature.rescoring.nbest import RescoredLine
from moses_feature.runtime.errors import DataError

MOST_MISSING = 100_000
"""The most consecutive sentences without a list that are taken for empty ones."""


@dataclass(frozen=True)
class Outcome:
    """The effect of reranking.

    Attributes:
        sentences: sentences with a list.
        missing: sentences without a list, though a reference has words.
        changed: sentences with a list whose best translation is not the decoder's first one.
        bleu_before, bleu_after: BLEU, 0 to 100, of the decoder's first translations and of the best
            ones, over all sentences of the references; None without references.
    """

    sentences: int
    missing: int
    changed: int
    bleu_before: float | None
    bleu_after: float | None


class OneBest:
    """Collects the best translations, list by list.

    Args:
        references: files with one reference per line; empty for no BLEU.
        lists: the file of the lists, for errors.
        sentences: the number of source sentences; None if it is not known.

    Raises:
        DataError: the files have different numbers of lines, or no word.
    """

    def __init__(
        self,
        references: Sequence[str] = (),
        lists: str = "lists",
        sentences: int | None = None,
    ) -> None:
        self._lists_name = lists
        texts, _ = read_parallel(references)
        self._name = ", ".join(references)
        self._references = list(zip(*texts, strict=True))
        if references and sentences not in (None, len(self._references)):
            raise DataError(
                f"{self._name}: expected as many lines as the text that was translated has, "
                f"{sentences}, found {len(self._references)}"
            )
        self._sentences = sentences or len(self._references)
        self._before = self._after = np.zeros(BLEU.width, np.int64)
        self._next = self._lists = self._missing = self._changed = 0

    def add(self, translations: Sequence[RescoredLine]) -> bytes:
        """Add the list of a sentence.

        Returns:
            The best translation as a line, after empty lines for sentences without a list before.

        Raises:
            DataError: lists that are not in the order of the sentences, or a list of a sentence
                without reference.
        """
        best = max(translations, key=lambda translation: translation.total)
        first = min(translations, key=lambda translation: translation.place)
        sentence = best.sentence
        if not self._next <= sentence <= self._next + MOST_MISSING:
            raise DataError(
                f"{self._lists_name}: expected lists in the order of the sentences, found one of "
                f"sentence {sentence} (from 0) after {self._next} of them"
            )
        missing = sentence - self._next
        for number in range(self._next, sentence):
            self._count_missing(number)
        self._count(sentence, first.words, best.words)
        self._next = sentence + 1
        self._lists += 1
        self._changed += first.words != best.words
        return b"\n" * missing + b" ".join(best.words) + b"\n"

    def _count(self, sentence: int, before: Sequence[bytes], after: Sequence[bytes]) -> None:
        if not self._name:
            return
        if sentence >= len(self._references):
            raise DataError(
                f"{self._name}: expected a sentence {sentence} (from 0) as in the lists, found "
                f"{len(self._references)} lines"
            )
        both = BLEU.references(self._references[sentence]).statistics([before, after])
        self._before = self._before + both[0]
        self._after = self._after + both[1]

    def _count_missing(self, sentence: int) -> None:
        self._count(sentence, (), ())
        self._missing += bool(self._name) and any(self._references[sentence])

    def rest(self) -> bytes:
        """Return empty lines for the sentences after the last list, if their number is known."""
        return b"\n" * max(0, self._sentences - self._next)

    def outcome(self) -> Outcome:
        """Return the effect of reranking, after the last list."""
        if not self._name:
            return Outcome(self._lists, 0, self._changed, None, None)
        for sentence in range(self._next, len(self._references)):
            self._count_missing(sentence)
        self._next = max(self._next, len(self._references))
        bleu = [BLEU.shown(BLEU.quality(counts)) for counts in (self._before, self._after)]
        return Outcome(self._lists, self._missing, self._changed, bleu[0], bleu[1])
