"""Sentences of a large corpus that are like those of a domain.

A sentence is ranked by its cross-entropy under a model of the domain minus that under a model of
the corpus (Moore and Lewis 2010); a sentence pair by the sum over both sides (Axelrod et al.
2011). The lowest come first.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.errors import FormatError, UsageError
from moses_feature.selection.domain_models import (
    DomainModel,
    estimated,
    is_model,
    read_sentences,
    vocabulary_of,
)

GRID = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the good lines that are tried on a development text."""
LINES_BETWEEN_REPORTS = 1000
GOOD, EMPTY, UNEQUAL = range(3)


@dataclass(frozen=True)
class CorpusSide:
    """One side of the corpus, with its models.

    Attributes:
        text: the file.
        in_domain, general: a KenLM model or a text of each kind; without a general one, sentences
            are drawn from the corpus, as many as the domain's text has.
        dev: a text of the domain that decides how much to keep; None if something else does.
    """

    text: str
    in_domain: str
    general: str | None = None
    dev: str | None = None


@dataclass(frozen=True)
class SelectionSettings:
    """How much to keep: one of `lines` and `words`, or by the sides' development texts.

    Attributes:
        lines: the number of lines to keep.
        words: the number of words of the last side to keep.
        order: the order of the models that are estimated.
        ratio: a pair with a side that is longer by more than this factor is bad.
        seed: the seed of drawing sentences.
    """

    lines: int | None = None
    words: int | None = None
    order: int = 4
    ratio: float = 9.0
    seed: int = 1


@dataclass
class Ranking:
    """The scores of all lines of a corpus.

    Attributes:
        scores: (lines,) cross-entropy differences in nats per word, summed over the sides.
        kinds: (lines,) GOOD, EMPTY (a side without words) or UNEQUAL (in length).
        lengths: (lines,) words of the last side.
    """

    scores: NDArray[np.float32]
    kinds: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    order: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        good = np.flatnonzero(self.kinds == GOOD)
        self.order = good[np.argsort(self.scores[good], kind="stable")]

    def count(self, kind: int) -> int:
        """Return the number of lines of a kind."""
        return int((self.kinds == kind).sum())

    def best(self, lines: int | None, words: int | None) -> int:
        """Return the number of best lines that fit into a budget."""
        if words is None:
            return len(self.order) if lines is None else min(lines, len(self.order))
        return int(np.searchsorted(np.cumsum(self.lengths[self.order]), words, side="right"))


class Selector:
    """Ranks a corpus of one or two sides.

    Raises:
        UsageError: of both models, one is a file and the other one a text.
        MosesFeatureError: a file cannot be read, or has no words.
    """

    def __init__(self, sides: Sequence[CorpusSide], settings: SelectionSettings) -> None:
        self._sides = sides
        self._settings = settings
        self._vocabularies: list[set[bytes] | None] = []
        self._models: list[tuple[DomainModel, DomainModel]] = []
        for side in sides:
            self._add_models(side)

    def _add_models(self, side: CorpusSide) -> None:
        from_text = not is_model(side.in_domain)
        general_is_model = side.general is not None and is_model(side.general)
        if from_text != (not general_is_model):
            found = f"{side.in_domain}, {side.general}"
            if side.general is None:
                raise UsageError(f"{side.in_domain} is a model: give another one by --general")
            raise UsageError(
                f"{found}: expected two models or two texts, since both must know the same words"
            )
        if not from_text:
            self._vocabularies.append(None)
            self._models.append((DomainModel(side.in_domain), DomainModel(side.general or "")))
            return
        words, order = vocabulary_of(side.in_domain), self._settings.order
        self._vocabularies.append(words)
        inside = estimated(read_sentences(side.in_domain), side.in_domain, words, order)
        general = self._drawn(side) if side.general is None else read_sentences(side.general)
        of_all = estimated(general, side.general or side.text, words, order)
        self._models.append((inside, of_all))

    def _drawn(self, side: CorpusSide) -> list[list[bytes]]:
        """Draw sentences from the corpus, as many as the domain's text has."""
        wanted = sum(1 for _ in read_sentences(side.in_domain))
        random = np.random.default_rng(self._settings.seed)
        drawn: list[list[bytes]] = []
        for seen, words in enumerate(read_sentences(side.text)):  # reservoir sampling
            if len(drawn) < wanted:
                drawn.append(words)
            elif (place := int(random.integers(seen + 1))) < wanted:
                drawn[place] = words
        return drawn

    def rank(self, report: Callable[[int], None] = lambda _: None) -> Ranking:
        """Score all lines of the corpus.

        Args:
            report: called from time to time with the number of lines done.
        """
        scores, kinds, lengths = array("f"), array("B"), array("q")
        texts = [side.text for side in self._sides]
        for number, lines in enumerate(raw_lines(texts), 1):
            sentences = [tokens(line) for line in lines]
            if number % LINES_BETWEEN_REPORTS == 0:
                report(number)
            counts = [len(words) for words in sentences]
            score, kind = float("nan"), GOOD
            if min(counts) == 0:
                kind = EMPTY
            elif max(counts) > self._settings.ratio * min(counts):
                kind = UNEQUAL
            else:
                score = sum(
                    inside.cross_entropy(words) - general.cross_entropy(words)
                    for words, (inside, general) in zip(sentences, self._models, strict=True)
                )
            scores.append(score)
            kinds.append(kind)
            lengths.append(counts[-1])
        return Ranking(
            np.array(scores, dtype=np.float32),
            np.array(kinds, dtype=np.uint8),
            np.array(lengths, dtype=np.int64),
        )

    def tried(self, ranking: Ranking) -> list[tuple[int, list[float]]]:
        """Try the shares of the grid on the development texts.

        Returns:
            lines, and the cross-entropy of each side's development text (nats per word) under a
            model of these best lines.
        """
        found = []
        for count in sorted({max(1, round(share * len(ranking.order))) for share in GRID}):
            chosen = np.zeros(len(ranking.scores), dtype=np.bool_)
            chosen[ranking.order[:count]] = True
            entropies = []
            for side, words in zip(self._sides, self._vocabularies, strict=True):
                if side.dev is None:
                    raise UsageError("a development text is needed for each side")
                kept = (
                    of for of, flag in zip(read_sentences(side.text), chosen, strict=True) if flag
                )
                model = estimated(kept, side.text, words, self._settings.order)
                entropies.append(model.of_text(read_sentences(side.dev), side.dev))
            found.append((count, entropies))
        return found


def raw_lines(paths: Sequence[str]) -> Iterator[tuple[bytes, ...]]:
    """Yield each line of all sides, as bytes.

    Raises:
        FormatError: the sides have different numbers of lines.
    """
    with ExitStack() as stack:
        readers = [stack.enter_context(LineReader(path)) for path in paths]
        for number, lines in enumerate(zip_longest(*readers), 1):
            if None in lines:
                expected = "as many lines as in the other text"
                short = paths[lines.index(None)]
                raise FormatError(short, expected, "the end of the file", number)
            yield lines
