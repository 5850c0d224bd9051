"""A translation in another decoder's list, and its line in Moses' format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import SEPARATOR, tokens
from moses_feature.runtime.errors import FormatError, shown

LOG_PROB = "LogProb0"
"""log p of a translation, for decoders that give one."""
TOTAL = "Total0"
"""The score by which a decoder ranks its lists, if it is not one of its features."""
LENGTH = "WordPenalty0"
"""Minus the number of words: added to all lists, so that tuning can balance length, too."""


@dataclass(frozen=True)
class ListedTranslation:
    """A translation in another decoder's list.

    Attributes:
        line_number: its line in the file, 1-based.
        sentence: the number of the sentence, from 0.
        text: target words.
        values: of the decoder's features by name, natural logs.
        total: the score by which the decoder ranked the list, higher is better.
        links: the word alignment in Moses' format; None if there is none.
    """

    line_number: int
    sentence: int
    text: bytes
    values: Mapping[str, float]
    total: float
    links: bytes | None = None

    def as_moses_line(self, path: str) -> bytes:
        """Return the line of an n-best list; `path` is named in errors.

        Raises:
            FormatError: a number that is not finite, or words that Moses' format cannot represent.
        """
        values = {**self.values, LENGTH: 0.0 - len(tokens(self.text))}
        for value in (self.total, *values.values()):
            if not math.isfinite(value):
                raise FormatError(path, "finite scores", f"{value:g}", self.line_number)
        if SEPARATOR in self.text or b"\n" in self.text:
            expected = "a translation on one line, without |||"
            raise FormatError(path, expected, shown(self.text), self.line_number)
        features = " ".join(f"{name}= {value:.9g}" for name, value in values.items()).encode()
        words = b"".join(word + b" " for word in tokens(self.text))
        line = b"%d ||| %b ||| %b ||| %.9g" % (self.sentence, words, features, self.total)
        return line + (b"" if self.links is None else b" ||| %b " % self.links) + b"\n"


Format = Callable[[LineReader], Iterator[ListedTranslation]]
"""Reads the lists of a decoder, sentence by sentence."""
