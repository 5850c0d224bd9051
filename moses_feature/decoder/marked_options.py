"""The phrase options of marked sentences: given translations, and what they leave of the tables.

Each span whose options are not those of its words alone gets a source phrase of its own. Follows
`moses/TranslationOptionCollection.cpp` and `moses/TranslationOptionCollectionText.cpp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from moses_feature.decoder.options import WINDOW
from moses_feature.decoder.source_phrases import SourcePhrases
from moses_feature.decoder.tables import Rows, TargetPhrases
from moses_feature.moses.xml_input import GivenTranslation, MarkedSentence
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import MosesFeatureError

UNKNOWN, GIVEN = -1, -2
"""In place of a table's number: of a word that is copied, of a translation that the input gives."""


@dataclass
class _Span:
    """A span with options of its own.

    Attributes:
        sentence, start, end: its words, the end excluded.
        phrase: the number of its words as a source phrase; -1 if they are too many.
        given: the translations that the input gives.
        copied: whether its word may be copied.
        kept: whether it has the options of the tables, too.
        required: what these must have in their words, if anything.
    """

    sentence: int
    start: int
    end: int
    phrase: int
    given: list[GivenTranslation] = field(default_factory=list)
    copied: bool = False
    kept: bool = False
    required: tuple[bytes, ...] = ()


class MarkedOptions:
    """The spans of some sentences that have options of their own.

    Args:
        sentences: the sentences.
        policy: one of `moses_feature.moses.xml_input.POLICIES`.
        sources: the source phrases of the sentences, all numbered.
        targets: the target phrases; those of the new options are added.

    Attributes:
        rows: the options that no table has, without scores.
        tables: (options,) `UNKNOWN` or `GIVEN`.
        log_probs: (given options,) the natural log of their probabilities.
        spans: for each sentence, (n, longest) numbers of the source phrases.
        lengths: the number of words of each new source phrase.
        phrases: (new source phrases,) the source phrases of the same words; -1 for none.
    """

    def __init__(
        self,
        sentences: Sequence[MarkedSentence],
        policy: str,
        sources: SourcePhrases,
        targets: TargetPhrases,
    ) -> None:
        self.spans = sources.spans()
        self._first, self._targets = len(sources), targets
        self._spans: list[_Span] = []
        if policy != "ignore":
            for number, sentence in enumerate(sentences):
                if sentence.given:
                    self._mark(number, sentence, policy)
        self.phrases = np.array([span.phrase for span in self._spans], np.int64)
        self.lengths = [span.end - span.start for span in self._spans]
        options = [
            (number, words, given)
            for number, span in enumerate(self._spans, self._first)
            for words, given in self._options(span, sentences[span.sentence])
        ]
        self.tables = np.array([UNKNOWN if of is None else GIVEN for *_, of in options], np.int64)
        self.log_probs = np.array([of.log_prob for *_, of in options if of])
        lengths = dict(enumerate(self.lengths, self._first))
        self.rows = Rows(
            np.array([number for number, *_ in options], np.int64),
            np.array([targets.number(b" ".join(words)) for _, words, _ in options], np.int64),
            np.empty((len(options), 0)),
            np.array([_diagonal(lengths[n], len(words)) for n, words, _ in options], object),
        )

    @staticmethod
    def _options(
        span: _Span, sentence: MarkedSentence
    ) -> list[tuple[tuple[bytes, ...], GivenTranslation | None]]:
        copied = [(sentence.words[span.start : span.end], None)] if span.copied else []
        return [*((given.words, given) for given in span.given), *copied]

    def _mark(self, number: int, sentence: MarkedSentence, policy: str) -> None:
        """Change the spans of a sentence."""
        phrases = self.spans[number]
        longest = max(of.end - of.start for of in sentence.given)
        if longest > WINDOW:
            raise MosesFeatureError(
                f"expected given translations of {WINDOW} words at most, found one of {longest}"
            )
        wider = ((0, 0), (0, max(longest - phrases.shape[1], 0)))
        self.spans[number] = phrases = np.pad(phrases, wider, constant_values=-1)
        size, width = phrases.shape
        marked = np.zeros(size, bool)
        for of in sentence.given:
            marked[of.start : of.end] = True
        for start in range(size):
            for end in range(start + 1, min(start + width, size) + 1):
                if not marked[start:end].any():
                    continue
                span = _Span(number, start, end, int(phrases[start, end - start - 1]))
                span.given = [of for of in sentence.given if (of.start, of.end) == (start, end)]
                if policy == "inclusive" and not span.given:
                    continue
                if policy == "constraint":
                    span.required = _required(sentence, start, end)
                span.kept = span.phrase >= 0 and (policy == "inclusive" or bool(span.required))
                span.copied = end == start + 1 and not (span.given or span.kept)
                phrases[start, end - start - 1] = self._add(span)

    def _add(self, span: _Span) -> int:
        """Add a span, and return the number of its source phrase; -1 if it has no options."""
        if not (span.given or span.copied or span.kept):
            return -1
        self._spans.append(span)
        return self._first + len(self._spans) - 1

    def merged(
        self,
        ranked: tuple[Integers, Integers, Integers],
        estimate: Floats,
        target: Integers,
        table: Integers,
    ) -> tuple[Integers, Integers, Integers]:
        """Return the ranked options with those of the tables that marked spans have, too.

        Args:
            ranked: order, first and size; see `Options`.
            estimate: (options,) the scores that they are ranked by.
            target: (options,) target phrases.
            table: (options,) the table of each option.
        """
        order, first, size = ranked
        parts, used = [order], len(order)
        for number, span in enumerate(self._spans, self._first):
            if not span.kept:
                continue
            theirs = order[first[span.phrase] :][: size[span.phrase]]
            kept = [n for n in theirs[table[theirs] >= 0].tolist() if self._has(span, target[n])]
            own = order[first[number] :][: size[number]].tolist()
            options = np.array([*own, *kept], np.int64)
            options = options[np.argsort(-estimate[options], kind="stable")]
            parts.append(options)
            first[number], size[number] = used, len(options)
            used += len(options)
        return np.concatenate(parts), first, size

    def _has(self, span: _Span, target: int) -> bool:
        words = b" %b " % b" ".join(span.required)
        return not span.required or words in b" %b " % self._targets.phrases.of(target)


def _required(sentence: MarkedSentence, start: int, end: int) -> tuple[bytes, ...]:
    """Return the words that an option of a span must have; none if it may have no option.

    Like in Moses, the first translation decides that the span meets.
    """
    for of in sentence.given:
        if of.start >= start and of.end <= end:
            return of.words
        if of.start < end and of.end > start:
            return ()
    return ()


def _diagonal(source: int, target: int) -> bytes:
    return b" ".join(b"%d-%d" % (min(n, source - 1), n) for n in range(target))
