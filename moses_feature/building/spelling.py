"""Unknown words, spelt like the nearest word that a system knows.

A small corpus has few forms of a word, and often several spellings. Decoders copy unknown words,
which is right for names, and wrong for all else.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.networks.vocabulary import Vocabulary

LETTERS_AN_EDIT = 4
"""Letters of an unknown word for each letter that may differ; one may in all."""
SHORTEST, LONGEST = 4, 40
"""Letters of an unknown word; known ones may be a letter shorter."""
REMEMBERED = 100_000
"""Unknown words whose spelling is kept, for what comes again."""
APART = frozenset("&@/.<>")
"""Characters of addresses and escaped characters."""


class Spelling:
    """Spells unknown words of the source language.

    The nearest known word has the fewest letters inserted, deleted or replaced (Levenshtein 1966);
    of several, the one with the longest common beginning, then the most frequent one. A word stays
    as it is if the target language knows it, or has one that is as near: it is likely to be a name
    or a loan word, to be copied. So do short words, and those with digits.

    Args:
        source, target: all words that the system knows, escaped.
    """

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        self._source, self._target = _Words(source), _Words(target)
        self._known = {*self._source.ranks, *self._target.ranks}
        self._spelt: dict[str, str] = {}

    def __call__(self, tokens: str) -> str:
        """Return tokens with a space between them, the unknown ones spelt like known ones."""
        return " ".join(map(self._word, tokens.split(" ")))

    def spelt(self) -> dict[str, str]:
        """Return the unknown words so far that were spelt otherwise, and how."""
        return {word: spelt for word, spelt in self._spelt.items() if word != spelt}

    def _word(self, word: str) -> str:
        if word in self._known:
            return word
        if word not in self._spelt:
            if len(self._spelt) == REMEMBERED:
                self._spelt.clear()
            self._spelt[word] = self._nearest(word)
        return self._spelt[word]

    def _nearest(self, word: str) -> str:
        plain = _plain(word)
        if not _has_letters(plain, SHORTEST):
            return word
        edits, nearest = self._source.nearest(plain)
        return nearest if edits < self._target.nearest(plain)[0] else word


class _Words:
    """Words of a language, to find the nearest ones among them."""

    def __init__(self, words: Vocabulary) -> None:
        self.ranks = {word.decode(): rank for rank, word in enumerate(words.shortlist)}
        fit = (word for word in self.ranks if _has_letters(_plain(word), SHORTEST - 1))
        self._words = sorted(fit, key=lambda of: len(_plain(of)))
        self._plain = [*map(_plain, self._words)]
        self._lengths = np.array([*map(len, self._plain)], np.int64)
        self._letters = np.zeros((LONGEST, len(self._words)), np.int32)
        for column, of in enumerate(self._plain):
            self._letters[: len(of), column] = [*map(ord, of)]

    def nearest(self, word: str) -> tuple[int, str]:
        """Return the edits between a word and the nearest one, and that one.

        If none is near, return more edits than any that is near has, and the word.
        """
        most = max(1, len(word) // LETTERS_AN_EDIT)
        bounds = len(word) - most, len(word) + most + 1
        first, end = np.searchsorted(self._lengths, bounds)
        found = edits(word, self._letters[: bounds[1] - 1, first:end], self._lengths[first:end])
        least = int(found.min(initial=most + 1))
        if least > most:
            return LONGEST, word
        near = first + np.flatnonzero(found == least)

        def preference(of: int) -> tuple[int, int]:
            return _common(word, self._plain[of]), -self.ranks[self._words[of]]

        return least, self._words[max(near.tolist(), key=preference)]


def edits(word: str, letters: NDArray[np.int32], lengths: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the Levenshtein distance between a word and each of others.

    Args:
        word: of `LONGEST` letters at most.
        letters: (longest, N); letter l of word n.
        lengths: (N); of the words.
    """
    longest, count = letters.shape
    insertions = np.arange(longest + 1, dtype=np.int8)[:, None]
    row = np.repeat(insertions, count, 1)  # edits to each beginning of each word
    for deletions, letter in enumerate(word, 1):
        best = np.full_like(row, deletions)
        np.minimum(row[1:] + np.int8(1), row[:-1] + (letters != ord(letter)), out=best[1:])
        row = np.minimum.accumulate(best - insertions, axis=0) + insertions
    return row[lengths, np.arange(count)]


def _plain(word: str) -> str:
    """Return a word with its apostrophes as they are written."""
    return word.replace("&apos;", "'")


def _has_letters(word: str, shortest: int) -> bool:
    """Return whether a word is one of letters, of a length that is looked at."""
    return (
        shortest <= len(word) <= LONGEST
        and any(map(str.isalpha, word))
        and not any(map(str.isdigit, word))
        and APART.isdisjoint(word)
    )


def _common(one: str, other: str) -> int:
    """Return the number of letters at the beginning that two words have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def words_of(text: Path) -> Vocabulary:
    """Return all words of an escaped text; of equally frequent ones, the earlier one is first."""
    with LineReader(text) as reader:
        counts = Counter(word for line in reader for word in tokens(line))
    return Vocabulary(tuple(word for word, _ in counts.most_common()))
