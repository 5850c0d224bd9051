"""Unknown words, spelt like the nearest words that a system knows.

A small corpus has few forms of a word, and often several spellings. Decoders copy unknown words,
which is right for names, and wrong for all else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, pairwise, takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moses_feature.moses.lines import LineReader

LETTERS_AN_EDIT = 3
"""Letters of a word for each letter that may differ; one may in all."""
SHORTEST, LONGEST = 4, 40
"""Letters of a word that is spelt otherwise; near ones may be a letter shorter."""
REMEMBERED = 100_000
"""Unknown words whose near ones are kept, for what comes again."""
APART = frozenset("&@/.<>")
"""Characters of addresses and escaped characters."""
END = ""
"""What stands before the first word of a sentence, and behind the last one."""


class Spelling:
    """Spells unknown words of the source language.

    The nearest known words have the fewest letters inserted, deleted or replaced (Levenshtein
    1966). Of these an unknown word is spelt like the one that the text has beside most of its two
    neighbours; of several, the one with the longest common beginning, then the most frequent one. A
    word stays as it is if the target language knows it, or has one that is as near: it is likely to
    be a name or a loan word, to be copied. So do short words, and those with digits.

    Args:
        source, target: the texts that the system was built of, escaped, a sentence on each line;
            a list of words does, too, and then neighbours decide nothing.
    """

    def __init__(self, source: Path, target: Path) -> None:
        sentences = [*_sentences(source)]
        counts = Counter(chain.from_iterable(sentences))
        self._beside = {*chain.from_iterable(pairwise((END, *of, END)) for of in sentences)}
        self._source = _Words(counts)
        self._target = _Words(Counter(chain.from_iterable(_sentences(target))))
        self._known = {*self._source.ranks, *self._target.ranks}
        self._near: dict[str, list[str]] = {}
        self._spelt: dict[str, str] = {}

    def __call__(self, tokens: str) -> str:
        """Return tokens with a space between them, some spelt like known ones."""
        words = [END, *tokens.split(" "), END]
        for place, word in enumerate(words[1:-1], 1):
            if word not in self._known and (near := self._nearest(word)):
                spelt = self._fitting(near, words[place - 1], words[place + 1])
                words[place] = self._spelt[word] = spelt
        return " ".join(words[1:-1])

    def spelt(self) -> dict[str, str]:
        """Return the unknown words so far that were spelt otherwise, and how they last were."""
        return self._spelt

    def _nearest(self, word: str) -> list[str]:
        """Return the known words that an unknown one may be spelt like, the best first."""
        if word not in self._near:
            if len(self._near) == REMEMBERED:
                self._near.clear()
                self._spelt.clear()
            self._near[word] = self._looked_up(_plain(word))
        return self._near[word]

    def _looked_up(self, word: str) -> list[str]:
        if not _has_letters(word, SHORTEST):
            return []
        of_source, near = self._source.nearest(word)
        of_target, _ = self._target.nearest(word)
        return near if of_source < of_target else []

    def _fitting(self, near: list[str], before: str, after: str) -> str:
        """Return the first word that the text has beside most of two neighbours."""

        def neighbours(word: str) -> int:
            return ((before, word) in self._beside) + ((word, after) in self._beside)

        return max(near, key=neighbours)


class _Words:
    """Words of a text, to find the nearest ones among them.

    Args:
        counts: how often the text has each word.
    """

    def __init__(self, counts: Counter[str]) -> None:
        self.ranks = {word: rank for rank, (word, _) in enumerate(counts.most_common())}
        fit = (word for word in self.ranks if _has_letters(_plain(word), SHORTEST - 1))
        self._words = sorted(fit, key=lambda of: len(_plain(of)))
        self._plain = [*map(_plain, self._words)]
        self._lengths = np.array([*map(len, self._plain)], np.int64)
        self._letters = np.zeros((LONGEST, len(self._words)), np.int32)
        for column, of in enumerate(self._plain):
            self._letters[: len(of), column] = [*map(ord, of)]

    def nearest(self, word: str) -> tuple[int, list[str]]:
        """Return the edits between a word and the nearest ones, and these, the best first.

        If none is near, return more edits than any that is near has, and none.
        """
        most = max(1, len(word) // LETTERS_AN_EDIT)
        bounds = len(word) - most, len(word) + most + 1
        first, end = np.searchsorted(self._lengths, bounds)
        found = edits(word, self._letters[: bounds[1] - 1, first:end], self._lengths[first:end])
        least = int(found.min(initial=most + 1))
        if least > most:
            return LONGEST, []
        near = (first + np.flatnonzero(found == least)).tolist()

        def preference(of: int) -> tuple[int, int]:
            return -_common(word, self._plain[of]), self.ranks[self._words[of]]

        return least, [self._words[of] for of in sorted(near, key=preference)]


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


def _sentences(text: Path) -> Iterable[list[str]]:
    with LineReader(text) as reader:
        for line in reader:
            yield line.decode().rstrip("\r\n").split(" ")
