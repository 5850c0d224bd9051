"""The graph of partial translations that a search makes; for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_feature.runtime.arrays import Integers, Records

HYPOTHESIS = np.dtype(
    [
        ("score", "f8"),  # log-linear score
        ("total", "f8"),  # score plus the estimate for the uncovered words
        ("previous", "i8"),  # the hypothesis before, -1 for the first
        ("option", "i8"),  # the last option, -1 for the first
        ("start", "i8"),  # first source word of the last span, -1 for the first
        ("end", "i8"),  # last source word of it, -1 for the first
        ("gap", "i8"),  # first uncovered source word
        ("mask", "i8"),  # bits of the covered words from there on
        ("written", "i8"),  # target words, counted if a reference is forced, else 0
        ("next_worse", "i8"),  # next hypothesis that recombined with this one; -1 at the end
    ]
)
"""A partial translation; of recombined hypotheses the best comes first, the others unsorted."""


class Hypotheses(NamedTuple):
    """The hypotheses of a search in progress.

    Attributes:
        records: (capacity,) `HYPOTHESIS` records, of which the first ones are in use.
        states: (capacity, m) states of the language models.
    """

    records: Records
    states: Integers


class Graph(NamedTuple):
    """The result of a search.

    Attributes:
        hypotheses: all hypotheses, `HYPOTHESIS` records; the first is the empty one.
        complete: the complete hypotheses that won their recombination, best first.
    """

    hypotheses: Records
    complete: Integers
