"""Check whether the lines of a reference belong to those of the input.

The translations that a table has for the words of a sentence predict its own reference much better
than that of another sentence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import Words
from moses_feature.doctor.texts import Sentence

COMPARED = 2000
"""The number of sentences whose order is checked."""
FEWEST = 40
"""The fewest sentences whose order can be judged."""
APART = 7
"""The distance, in lines, of sentences assumed to be unrelated."""
SHIFTS = (1, -1, 2, -2, 3, -3)
LEAST_GAIN = 1.5
"""How many times better a sentence predicts its own reference than an unrelated one.

It is 6 or more in aligned texts (Multi30k, laws).
"""
LEAST_DIFFERENT = 0.5
"""The least share of different lines in texts whose order can be judged."""
LEAST_TRANSLATED = 0.6
"""The least share of words with translations in the table for this check."""


def sample_words(sentences: Sequence[Sentence]) -> set[bytes]:
    """Return the words whose translations `check_order` needs."""
    return {word for sentence in sentences[:COMPARED] for word in sentence}


def check_order(
    tables: Words, path: str, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> Iterator[Finding]:
    """Yield a finding if the lines of a reference are those of another text, or shifted.

    There must be as many references as sentences.
    """
    sentences, references = sentences[:COMPARED], references[:COMPARED]
    if len(sentences) < FEWEST or _translated(tables, sentences) < LEAST_TRANSLATED:
        return
    if len(set(map(tuple, references))) < LEAST_DIFFERENT * len(references):
        return
    agreement = _agreement(tables, sentences, references)
    needed = LEAST_GAIN * agreement[APART]
    if agreement[0] >= needed:
        return
    best = max(SHIFTS, key=lambda shift: agreement[shift])
    fits = agreement[best] >= needed
    yield Finding(
        "problem",
        path,
        "its lines do not belong to those of the input"
        + (f"; moved by {best}, they do" if fits else ""),
        "sentences are compared with references of others: BLEU is next to nothing",
        "see which line is missing or doubled"
        if fits
        else "see that both are of the same text, in the same order",
    )


def _agreement(
    tables: Words, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> dict[int, float]:
    """Return how well sentences predict their own references (0), and shifted ones.

    It is the sum over the words that the translations of a sentence and the reference share, each
    the log of its inverse frequency.
    """
    predicted = [
        set().union(*(tables.translations.get(word, ()) for word in sentence))
        for sentence in sentences
    ]
    said = [set(reference) for reference in references]
    counts = Counter(word for words in said for word in words)
    rare = {word: math.log(len(said) / count) for word, count in counts.items()}
    return {
        shift: sum(
            rare[word]
            for n, words in enumerate(predicted)
            for word in words & said[(n + shift) % len(said)]
        )
        for shift in (0, APART, *SHIFTS)
    }


def _translated(tables: Words, sentences: Sequence[Sentence]) -> float:
    """Return the share of words for which the tables have translations of the single word."""
    words = [word for sentence in sentences for word in sentence]
    return sum(bool(tables.translations.get(word)) for word in words) / max(len(words), 1)
