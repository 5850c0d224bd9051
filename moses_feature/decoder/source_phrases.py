"""The source phrases of a text, which are looked up in tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from moses_feature.moses.phrase_table import tokens
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.strings import Strings, number_in_pool, over, with_room

Sentence = Sequence[bytes]


class SourcePhrases:
    """The phrases of some sentences, numbered.

    The phrases of a length are numbered when a table has one of that length.

    Args:
        sentences: the sentences, as tokens.
        longest: the longest phrase in words.

    Attributes:
        longest: as given.
        strings: the phrases that are numbered, with one space between their words.
    """

    def __init__(self, sentences: Sequence[Sentence], longest: int) -> None:
        words = list(itertools.chain.from_iterable(sentences))
        text = np.frombuffer(b" ".join(words), dtype=np.uint8)
        self.longest = longest
        self._word_ends = np.cumsum([len(word) + 1 for word in words], dtype=np.int64) - 1
        self._word_begins = self._word_ends - np.array([len(word) for word in words], np.int64)
        self._sentences = np.cumsum([0, *(len(sentence) for sentence in sentences)])
        self.strings = over(text)
        self._of_length: list[Integers] = []

    def __len__(self) -> int:
        return int(self.strings.used[0])

    def number_of(self, phrase: bytes) -> int:
        """Return the number of a phrase of words with one space between them; -1 if it has none."""
        return self.strings.number(phrase)

    def phrase(self, number: int) -> bytes:
        """Return the words of a phrase, with one space between them."""
        return self.strings.of(number)

    def gather(self, length: int) -> None:
        """Number all phrases of up to `length` words."""
        for words in range(len(self._of_length) + 1, length + 1):
            numbers = np.full(len(self._word_begins), -1, dtype=np.int64)
            self.strings = with_room(self.strings, len(numbers))
            places = self._word_begins, self._word_ends, self._sentences
            _gather(self.strings, *places, words, numbers)
            self._of_length.append(numbers)

    def spans(self) -> list[Integers]:
        """Return for each sentence (n, longest): the phrase of 1, 2, … words from each word on.

        An element is the number of the phrase, or -1 for none.
        """
        self.gather(1)
        of_words = np.stack(self._of_length, axis=1)
        return [of_words[first:last] for first, last in itertools.pairwise(self._sentences)]


@compiled
def _gather(
    strings: Strings,
    begins: Integers,
    ends: Integers,
    sentences: Integers,
    length: int,
    numbers: Integers,
) -> None:
    """Number the phrases of `length` words; write the number of each at its first word."""
    for sentence in range(len(sentences) - 1):
        for first in range(sentences[sentence], sentences[sentence + 1] - length + 1):
            numbers[first] = number_in_pool(strings, begins[first], ends[first + length - 1])


def surface_words(text: bytes) -> list[bytes]:
    """Return the words of a text; of a token with factors (`a|b`) the first one, like Moses."""
    return surface(tokens(text))


def surface(words: Sentence) -> list[bytes]:
    """Return the first factor of each token."""
    return [word.partition(b"|")[0] if b"|" in word else word for word in words]
