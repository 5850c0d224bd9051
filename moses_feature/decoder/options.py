"""Phrase options for compiled code, and their order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from moses_feature.decoder.operation_steps import Operations
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import INT_0, compiled
from moses_feature.runtime.hash_table import first_place, mixed, next_place, size_for

WINDOW = 60
"""How far behind the first gap source words may be covered, in words."""


class Options(NamedTuple):
    """Phrase options under given weights; n options, o orientations, m language models.

    Attributes:
        order: option numbers, the options of each source phrase best first.
        first, size: (source phrases,) where in `order` the options of each begin; their number.
        fixed: (n,) weighted scores that do not depend on the context.
        estimate: (n,) `fixed` plus the weighted language model scores without context.
        backward, forward: (n, 4) weighted lexicalised reordering scores by orientation.
        forward_class: (n,) options with equal forward scores have the same number.
        target: (n,) target phrases.
        word_offsets: (target phrases + 1,) where their words begin.
        words: the words of all target phrases.
        empty_states: (m, words) language model states after each word, if the phrase has no
            context.
        left: (m, words) scores of the words of the phrase behind this one, likewise. An
            operation sequence model has neither.
        operations: those of an operation sequence model.
        lm_weights: (m,) weights of the language models; that of an operation sequence model is 1.
        begin_states: (m,) language model states at the beginning of a sentence.
        distortion_weight: of one skipped word; multiplies a negative number.
        orientation: whether there is a reordering model, so that the last span matters.
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
    operations: Operations
    lm_weights: Floats
    begin_states: Integers
    distortion_weight: float
    orientation: bool


class FeatureLayout(NamedTuple):
    """The columns of the features, for compiled code.

    Attributes:
        size: the number of features.
        fixed_columns: (k,) columns of the values that do not depend on the context.
        fixed: (options, k) these values.
        distortion: column, -1 if there is none.
        lm_columns: (language models,) columns.
        backward_columns, forward_columns: (reordering models, 4) by orientation, -1 for none.
        backward, forward: (options, reordering models, 4) natural logs.
    """

    size: int
    fixed_columns: Integers
    fixed: Floats
    distortion: int
    lm_columns: Integers
    backward_columns: Integers
    forward_columns: Integers
    backward: Floats
    forward: Floats


def classes(rows: Floats) -> Integers:
    """Number the options (n, …) so that options with equal values have the same number."""
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    numbers: Integers = _numbered(flat + 0.0)  # makes -0.0 and 0.0 equal
    return numbers


@compiled
def _numbered(rows: Floats) -> Integers:
    """Number the distinct rows of (n, d) in the order of their first occurrence."""
    numbers = np.zeros(len(rows), np.int64)
    bits = rows.view(np.int64)
    table = np.zeros(size_for(len(rows)), np.int64)  # row + 1
    count = 0
    for row in range(len(rows)):
        hashed = INT_0
        for column in range(rows.shape[1]):
            hashed = mixed(hashed, bits[row, column])
        slot = first_place(hashed, len(table))
        while table[slot] > 0:
            same = True
            for column in range(rows.shape[1]):
                same = same and bits[table[slot] - 1, column] == bits[row, column]
            if same:
                break
            slot = next_place(slot, len(table))
        if table[slot] == 0:
            table[slot] = row + 1
            numbers[row] = count
            count += 1
        else:
            numbers[row] = numbers[table[slot] - 1]
    return numbers


def ranked(
    estimate: Floats, offsets: Integers, table: Integers, limits: Integers, most: int
) -> tuple[Integers, Integers, Integers]:
    """Rank the options of each source phrase, best first, within the limits of the tables.

    Of equal options, the one that comes first in the table wins.

    Args:
        estimate: (options,) the scores to rank by.
        offsets: (source phrases + 1,) where the options of each begin.
        table: (options,) the table of each option, -1 for an unknown word.
        limits: (tables,) the most options of a source phrase from each table, 0 for all.
        most: the most options of a source phrase from all tables.

    Returns:
        `order`, `first` and `size` as in `Options`.
    """
    phrases, options = len(offsets) - 1, len(estimate)
    phrase = np.repeat(np.arange(phrases), np.diff(offsets))
    order = np.lexsort((-estimate, phrase))
    limit = np.append(np.where(limits > 0, limits, options), options)  # the last: unknown words
    of_table = table[order]
    both = phrase[order] * len(limit) + of_table % len(limit)
    order = order[_ranks(both) < limit[of_table]]
    order = order[_ranks(phrase[order]) < most]
    size = np.bincount(phrase[order], minlength=phrases)
    return order, np.cumsum(size) - size, size


def _ranks(groups: Integers) -> Integers:
    """Return how many earlier elements have the same group, for each element."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered)
    return ranks
