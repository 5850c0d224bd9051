"""The phrases of a text, by which tables are filtered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moses_feature.arrays import Integers
from moses_feature.moses.phrase_table import tokens

Sentence = Sequence[bytes]


class SourcePhrases:
    """The phrases of some sentences, and numbers for those that have options.

    The phrases of a length are gathered when a table first asks for one that long.
    """

    def __init__(self, sentences: Sequence[Sentence], longest: int) -> None:
        self._sentences = sentences
        self._longest = longest
        self._of_length: dict[int, set[bytes]] = {}
        self.numbers: dict[bytes, int] = {}
        self._last: tuple[bytes, int | None] = b"", None

    def number(self, field: bytes) -> int | None:
        """Return the number of a source field; None if no sentence has the phrase."""
        if field != self._last[0]:  # the lines of a source phrase stand together
            self._last = field, self._number(field)
        return self._last[1]

    def _number(self, field: bytes) -> int | None:
        phrase = field.strip(b" \t")
        if b"\t" in phrase or b"  " in phrase or b"|" in phrase:
            phrase = b" ".join(surface_words(phrase))
        number = self.numbers.get(phrase)
        if number is None and phrase in self._of(phrase.count(b" ") + 1):
            number = self.numbers[phrase] = len(self.numbers)
        return number

    def _of(self, length: int) -> set[bytes]:
        if length not in self._of_length:
            self._of_length[length] = {
                b" ".join(sentence[start : start + length])
                for sentence in (self._sentences if length <= self._longest else ())
                for start in range(len(sentence) - length + 1)
            }
        return self._of_length[length]

    def spans(self) -> list[Integers]:
        """Return of every sentence (n, longest): the phrase of 1, 2, … words from each word on.

        The number of the phrase, or -1 where none was asked for.
        """
        longest = max((phrase.count(b" ") + 1 for phrase in self.numbers), default=1)
        return [self._spans(sentence, longest) for sentence in self._sentences]

    def _spans(self, sentence: Sentence, longest: int) -> Integers:
        spans = np.full((len(sentence), longest), -1, dtype=np.int64)
        for start in range(len(sentence)):
            for length in range(1, min(longest, len(sentence) - start) + 1):
                phrase = b" ".join(sentence[start : start + length])
                spans[start, length - 1] = self.numbers.get(phrase, -1)
        return spans


def surface_words(text: bytes) -> list[bytes]:
    """Return the words of a text; of a token with factors (`a|b`) the first, as Moses does."""
    return surface(tokens(text))


def surface(words: Sentence) -> list[bytes]:
    """Return the first factor of each token."""
    return [word.partition(b"|")[0] if b"|" in word else word for word in words]
