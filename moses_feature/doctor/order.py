"""Whether the lines of a reference belong to those of the input.

The translations that a table has for the words of a sentence predict its own reference much better
than that of another sentence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from moses_feature.arrays import Floats
from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import Words
from moses_feature.doctor.texts import Sentence

COMPARED = 2000
"""Sentences whose order is looked at."""
APART = 7
"""How far apart sentences are that have nothing to do with each other."""
SHIFTS = (1, -1, 2, -2, 3, -3)
BLOCK = 20
"""Sentences whose references may have moved together."""
LEAST_GAIN = 1.5
"""How many times more of its own reference a sentence predicts than of another one."""
BLOCK_GAIN = 2.0
"""How many times more a moved reference must have, of a block."""
LEAST_TRANSLATED = 0.6
"""Share of the words that must have translations of their own for all of this."""


def sample_words(sentences: Sequence[Sentence]) -> set[bytes]:
    """Return the words whose translations `check_order` needs."""
    return {word for sentence in sentences[:COMPARED] for word in sentence}


def check_order(
    tables: Words, path: str, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> Iterator[Finding]:
    """Yield whether the lines of a reference are those of another text, or moved."""
    if len(references) != len(sentences):
        yield Finding(
            "problem",
            path,
            f"{len(references):,} lines, the input has {len(sentences):,}",
            "sentences are compared with references of others",
            "see which lines are missing; empty ones count",
        )
        return
    size = min(COMPARED, len(sentences))
    if size < 2 * BLOCK or _translated(tables, sentences[:size]) < LEAST_TRANSLATED:
        return
    if len(set(map(tuple, references[:size]))) < size / 2:
        return  # texts that repeat themselves
    agreement = _agreement(tables, sentences[:size], references[:size])
    yield from _whole(path, agreement) or _from_somewhere_on(path, agreement)


def _agreement(
    tables: Words, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> dict[int, Floats]:
    """Return how much (sentences,) of its own reference, 0, and of moved ones a sentence predicts.

    That is the sum over the words that its translations and the reference share, each the log of
    how rare it is.
    """
    predicted = [
        set().union(*(tables.translations.get(word, ()) for word in sentence))
        for sentence in sentences
    ]
    said = [set(reference) for reference in references]
    rare = _inverse_frequencies(said)
    return {
        shift: np.array(
            [
                sum(rare[word] for word in words & said[(n + shift) % len(said)])
                for n, words in enumerate(predicted)
            ]
        )
        for shift in (0, APART, *SHIFTS)
    }


def _whole(path: str, agreement: dict[int, Floats]) -> list[Finding]:
    """Return whether all lines are those of another text, or moved."""
    others = agreement[APART].sum()
    if not others or agreement[0].sum() >= LEAST_GAIN * others:
        return []
    best = max(SHIFTS, key=lambda shift: float(agreement[shift].sum()))
    fits = agreement[best].sum() >= LEAST_GAIN * others
    return [
        Finding(
            "problem",
            path,
            "its lines do not belong to those of the input"
            + (f"; moved by {best}, they do" if fits else ""),
            "sentences are compared with references of others: BLEU is next to nothing",
            "see which line is missing or doubled"
            if fits
            else "see that both are of the same text, in the same order",
        )
    ]


def _from_somewhere_on(path: str, agreement: dict[int, Floats]) -> list[Finding]:
    """Return where lines begin to fit moved ones."""
    own = agreement[0]
    for first in range(0, len(own) - BLOCK + 1, BLOCK):
        block = slice(first, first + BLOCK)
        best = max(SHIFTS, key=lambda shift: float(agreement[shift][block].sum()))
        if agreement[best][block].sum() > BLOCK_GAIN * max(own[block].sum(), 1.0):
            return [
                Finding(
                    "problem",
                    f"{path} at line {first + 1}",
                    f"from about here, its lines fit those of the input moved by {best}",
                    "sentences are compared with references of others: BLEU is much too low",
                    "see which line is missing or doubled somewhat before",
                )
            ]
    return []


def _inverse_frequencies(sentences: Sequence[set[bytes]]) -> dict[bytes, float]:
    """Return the log of how rare each word is: those in all sentences say nothing."""
    counts = Counter(word for sentence in sentences for word in sentence)
    return {word: math.log(len(sentences) / count) for word, count in counts.items()}


def _translated(tables: Words, sentences: Sequence[Sentence]) -> float:
    """Return the share of words that the tables have translations for by themselves."""
    words = [word for sentence in sentences for word in sentence]
    return sum(bool(tables.translations.get(word)) for word in words) / max(len(words), 1)
