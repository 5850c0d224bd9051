"""What the search works on: tuples of arrays and records, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

WINDOW = 60
"""Source words behind the first gap that may be covered."""
HASH_FACTOR = -7046029254386353131
"""2^64 divided by the golden ratio, as a signed number."""
MONOTONE, SWAP, DISCONTINUOUS_LEFT, DISCONTINUOUS_RIGHT = range(4)
"""Orientations as `mslr` models tell them apart; the others put some of them together."""


class Options(NamedTuple):
    """Phrase options under given weights; n options, o orientations, m language models.

    Attributes:
        order: option numbers, the options of each source phrase best first.
        first, size: (source phrases,) where in `order` its options stand, and how many.
        fixed: (n,) weighted scores that do not depend on the context.
        estimate: (n,) `fixed` and the weighted language models, without context.
        backward, forward: (n, 4) weighted lexicalised reordering scores by orientation.
        forward_class: (n,) options with equal forward scores have the same number.
        target: (n,) target phrases.
        word_offsets: (target phrases + 1,) where their words begin.
        words: the words of all target phrases.
        empty_states: (m, words) states after each word, the phrase without any context.
        left: (m, words) scores of the words of the phrase behind this one, likewise.
        lm_weights: (m,)
        begin_states: (m,)
        distortion_weight: of one skipped word; multiplies a negative number.
        orientation: whether any reordering model makes the last span matter.
    """

    order: Integers
    first: Integers
    size: Integers
    fixed: Floats
    estimate: Floats
    backward: Floats
    forward: Floats
    forward_class: Integers
    target: Integers
    word_offsets: Integers
    words: Integers
    empty_states: Integers
    left: Floats
    lm_weights: Floats
    begin_states: Integers
    distortion_weight: float
    orientation: bool


class Limits(NamedTuple):
    """How far the search goes.

    Attributes:
        pops: hypotheses taken from the cubes for each stack.
        stack: hypotheses of a stack that are expanded.
        distortion: the longest jump in source words, at most `WINDOW`.
    """

    pops: int
    stack: int
    distortion: int


HYPOTHESIS = np.dtype(
    [
        ("score", "f8"),  # log-linear score
        ("total", "f8"),  # the same with the estimate for the words that are not covered
        ("previous", "i8"),  # the hypothesis before, -1 for the first
        ("option", "i8"),  # the last option, -1 for the first
        ("start", "i8"),  # first source word of the last span, -1 for the first
        ("end", "i8"),  # last source word of it, -1 for the first
        ("gap", "i8"),  # first source word that is not covered
        ("mask", "i8"),  # bits of the covered words from there on
        ("written", "i8"),  # target words, counted when a reference is forced, else 0
        ("next_worse", "i8"),  # of those that recombined with this one, the next; -1 at the end
    ]
)
"""A partial translation; of those that recombine, the best comes first, the others in no order."""

CUBE = np.dtype(
    [
        ("group", "i8"),  # whose hypotheses are the rows
        ("start", "i8"),  # of the span
        ("length", "i8"),  # of the span
        ("phrase", "i8"),  # source phrase, whose options are the columns
        ("gap", "i8"),  # coverage of the new hypotheses
        ("mask", "i8"),
        ("future", "f8"),  # estimate for the words that they leave uncovered
    ]
)

ITEM = np.dtype(
    [
        ("cube", "i8"),
        ("row", "i8"),
        ("column", "i8"),
        ("score", "f8"),  # of the new hypothesis, -inf for one that is not allowed
        ("scored", "i8"),  # by the language models too; if not, it is a corner
    ]
)
"""A place in a cube."""


class Graph(NamedTuple):
    """What a search found.

    Attributes:
        hypotheses: all of them, `HYPOTHESIS` records; the first is the empty one.
        complete: numbers of the complete hypotheses that are best of their kind, best first.
    """

    hypotheses: NDArray[np.void]
    complete: Integers


class Groups(NamedTuple):
    """The hypotheses that are expanded, by stack and by what may follow them.

    Attributes:
        members: hypotheses, group after group, best first.
        first: where each group begins, and the end of the last.
        of_stack: (stacks + 1,) where the groups of each stack begin.
    """

    members: Integers
    first: Integers
    of_stack: Integers


class Task(NamedTuple):
    """What is searched for.

    Attributes:
        phrases: (n, longest) source phrase that begins at a word and has 1, 2, … words; -1 where
            there is none.
        limits: how far to go.
        reference: words of the only translation that is wanted, if `forced`.
        forced: whether to find nothing but the reference.
    """

    phrases: Integers
    limits: Limits
    reference: Integers
    forced: bool
