"""Phrase options for compiled code."""

from __future__ import annotations

from typing import NamedTuple

from moses_feature.decoder.operation_steps import Operations
from moses_feature.runtime.arrays import Floats, Integers

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


class Layout(NamedTuple):
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
