"""Check whether the lines of a reference belong to those of the input.

The translations that a table has for the words of a sentence predict its own reference much better
than that of another sentence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import Words
from moses_feature.doctor.texts import Sentence
from moses_feature.runtime.arrays import Floats

COMPARED = 2000
"""The number of sentences whose order is checked."""
APART = 7
"""The distance, in lines, of sentences assumed to be unrelated."""
SHIFTS = (1, -1, 2, -2, 3, -3)
BLOCK = 20
"""The number of sentences of a block, whose references may have moved together."""
LEAST_GAIN = 1.5
"""How many times more words of its own reference than of another one a sentence predicts."""
BLOCK_GAIN = 2.0
"""The same for a block; for aligned texts it is 6 or more (Multi30k, laws), else about 1."""
FEWEST_WORDS = 30
"""The fewest different words of a text whose single lines can be judged."""
FOREIGN = 0.15
"""The share of single lines that fit no better than others; of aligned texts it is at most 0.03."""
REPEATED = 0.25
"""A reference with fewer different lines than this share of the input's repeats itself."""
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
    size = min(COMPARED, len(sentences))
    if size < 2 * BLOCK or _translated(tables, sentences[:size]) < LEAST_TRANSLATED:
        return
    said, asked = (len(set(map(tuple, text[:size]))) for text in (references, sentences))
    if said < size / 2:  # the text repeats itself
        if said < REPEATED * asked:
            yield Finding(
                "problem",
                path,
                f"only {said:,} of its first {size:,} lines differ, {asked:,} of the input's do",
                "sentences are compared with references of others",
                "see what wrote the reference: it has written the same lines again and again",
            )
        return
    agreement = _agreement(tables, sentences[:size], references[:size])
    findings = _whole(path, agreement) or _from_somewhere_on(path, agreement)
    if not findings and len({word for line in references[:size] for word in line}) >= FEWEST_WORDS:
        findings = _here_and_there(path, agreement)
    yield from findings


def _agreement(
    tables: Words, sentences: Sequence[Sentence], references: Sequence[Sentence]
) -> dict[int, Floats]:
    """Return how well (sentences,) a sentence predicts its own reference (0) and shifted ones.

    It is the sum over the words that its translations and the reference share, each the log of its
    inverse frequency.
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
    """Return a finding if all lines are those of another text, or shifted."""
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
    """Return where lines begin to be shifted, or to fit no shift (then for two blocks)."""
    count = len(agreement[0]) // BLOCK
    blocks = {
        shift: of_lines[: count * BLOCK].reshape(count, BLOCK).sum(axis=1)
        for shift, of_lines in agreement.items()
    }
    needed = BLOCK_GAIN * blocks[APART]
    wrong = blocks[0] < needed
    for number in np.flatnonzero(wrong):
        best = max(SHIFTS, key=lambda shift: float(blocks[shift][number]))
        fits = blocks[best][number] >= needed[number]
        if fits or np.count_nonzero(wrong[number : number + 2]) == 2:
            return [
                Finding(
                    "problem",
                    f"{path} at line {number * BLOCK + 1}",
                    f"from about here, its lines fit those of the input moved by {best}"
                    if fits
                    else "from about here, its lines do not belong to those of the input",
                    "sentences are compared with references of others: BLEU is much too low",
                    "see which line is missing or doubled somewhat before"
                    if fits
                    else "see that both are of the same text, in the same order",
                )
            ]
    return []


def _here_and_there(path: str, agreement: dict[int, Floats]) -> list[Finding]:
    """Return a finding if many lines, not all, belong to other sentences."""
    own, apart = agreement[0], agreement[APART]
    foreign = np.flatnonzero(own < LEAST_GAIN * apart.mean())
    share = len(foreign) / len(own)
    if share < FOREIGN:
        return []
    return [
        Finding(
            "problem",
            f"{path} at line {foreign[0] + 1}",
            f"this and {len(foreign) - 1:,} of its first {len(own):,} lines, "
            f"{100 * share:.0f}%, do not belong to those of the input",
            "sentences are compared with references of others: BLEU is much too low",
            "see whether two texts were mixed, or every second line is of another one",
        )
    ]


def _inverse_frequencies(sentences: Sequence[set[bytes]]) -> dict[bytes, float]:
    """Return the log inverse frequency of each word: words in all sentences get 0."""
    counts = Counter(word for sentence in sentences for word in sentence)
    return {word: math.log(len(sentences) / count) for word, count in counts.items()}


def _translated(tables: Words, sentences: Sequence[Sentence]) -> float:
    """Return the share of words for which the tables have translations of the single word."""
    words = [word for sentence in sentences for word in sentence]
    return sum(bool(tables.translations.get(word)) for word in words) / max(len(words), 1)
