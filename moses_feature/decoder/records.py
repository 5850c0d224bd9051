"""What the search works on: tuples of arrays and records, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Floats, Integers, Records

WINDOW = 60
"""Source words behind the first gap that may be covered."""
PLAIN, WITH_BASE, TREE = range(3)
"""Kinds of contexts of neural models; see `Contexts`."""
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
        left: (m, words) scores of the words of the phrase behind this one, likewise. Joint models
            have neither.
        joint: the number of the first joint model.
        trees: that of the first model whose contexts are trees, behind the joint ones.
        history: (trees,) words before by which their hypotheses recombine.
        affiliation_offsets: (n + 1,) where the affiliations of each option begin.
        affiliations: of the target words of all options, the source word that each belongs to,
            counted from the first one of the span.
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
    joint: int
    trees: int
    history: Integers
    affiliation_offsets: Integers
    affiliations: Integers
    lm_weights: Floats
    begin_states: Integers
    distortion_weight: float
    orientation: bool


class Layout(NamedTuple):
    """Where the values of features stand among all features, for compiled code.

    Attributes:
        size: the number of features.
        fixed_columns: (k,) columns of the values that do not depend on the context.
        fixed: (options, k) these values.
        distortion: column, -1 if there is none.
        lm_columns: (language models,)
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


ENTRY = np.dtype(
    [
        ("key", "i8"),  # state and word, 0 where there is none
        ("score", "f8"),  # natural log
        ("following", "i8"),  # the state after the word
    ]
)
"""A look-up that is remembered; together, so that it is found in one or two lines of the cache."""


class Hypotheses(NamedTuple):
    """The hypotheses of a search, while it goes on.

    Attributes:
        records: (room,) `HYPOTHESIS` records, of which the first ones are made.
        states: (room, m) of the language models.
    """

    records: Records
    states: Integers


class Graph(NamedTuple):
    """What a search found.

    Attributes:
        hypotheses: all of them, `HYPOTHESIS` records; the first is the empty one.
        complete: numbers of the complete hypotheses that are best of their kind, best first.
    """

    hypotheses: Records
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
        windows: (joint models, n) numbers of the windows around the words.
        roots: (models of trees,) their states at the beginning of the sentence.
        windows: (joint models, n) numbers of the windows around the words.
        limits: how far to go.
        reference: words of the only translation that is wanted, if `forced`.
        forced: whether to find nothing but the reference.
    """

    phrases: Integers
    windows: Integers
    roots: Integers
    limits: Limits
    reference: Integers
    forced: bool


class Contexts(NamedTuple):
    """Contexts of one or more models.

    Attributes:
        rows: (room, 1 + width) the model's number; then of a neural model the ids of the words
            before, the nearest one last, 0 in front where it looks back less far than `width`
            words; of KenLM a state as it has it.
        slots: row and one; 0 where there is none.
        used: (1,) rows in use.
        widths: (models,) numbers of a context of each model; 0 if it has none here.
        kinds: (models,) `PLAIN`, the words before; `WITH_BASE`, in front of them the number of a
            base, 0 for none (`moses_feature.cslm.feed_forward`); or `TREE`, the number of the
            context before and the last word, -1 and less before the first
            (`moses_feature.rnnsearch.decoder_feature`).
    """

    rows: NDArray[np.int32]
    slots: NDArray[np.int32]
    used: NDArray[np.int64]
    widths: NDArray[np.int64]
    kinds: Integers


class Lookups(NamedTuple):
    """What compiled code needs to score words.

    A state's number is twice its number among `states` for KenLM, and for neural models twice that
    among `contexts`, and one.

    Attributes:
        entries: (slots,) `ENTRY` records.
        used: (1,) slots in use.
        answer: (1,) where Python leaves the state after a new look-up.
        states: of KenLM.
        kenlm_models, kenlm_scores: (models,) addresses of KenLM's models and of the functions that
            score a word; none if Python is to be asked.
        contexts: of neural models.
        networks: (models,) `NETWORK` records of neural models that answer at once; else zeros.
        ids: (models, words) the ids of the target words.
        guesses: (models, words) log p of the target words: out of context at first, then a moving
            average of what they scored.
        pairs: (PAIRS,) by a hash of the model, the word before and the word: what the pair scored
            last, or `NOT_KNOWN` of `language_model`.
        buffer: (n, 2) states and words that are to be scored.
        results: (n,) their scores, once they are.
        buffered: (1,) how many they are.
        guessed: (1,) answers that were guesses, since it was last set to 0.
        crowded: (1,) whether the table or the contexts were full.
        scored: (1,) n-grams that neural models have scored.
        ask: address of the function that Python answers with.
        flush: address of the function that scores what is in the buffer.
    """

    entries: Records
    used: Integers
    answer: Integers
    states: Contexts
    kenlm_models: Integers
    kenlm_scores: Integers
    contexts: Contexts
    networks: Records
    ids: NDArray[np.int32]
    guesses: Floats
    pairs: Floats
    buffer: Integers
    results: Floats
    buffered: Integers
    guessed: Integers
    crowded: Integers
    scored: Integers
    ask: int
    flush: int


class Problem(NamedTuple):
    """A task, the options under the weights, and the language models."""

    task: Task
    options: Options
    lookups: Lookups


class Estimates(NamedTuple):
    """What words that are not covered add at best.

    Attributes:
        future: (n + 1, WINDOW + 1) 0, 1, … words from a word on.
        rest: (n + 1,) all words from a word on.
    """

    future: Floats
    rest: Floats


class Frontier(NamedTuple):
    """The places of the cubes that lead into a stack, as far as they have been looked at.

    Attributes:
        cubes: (cubes,) `CUBE` records.
        items: (room,) `ITEM` records, the corner of each cube first.
        states: (room, m) of the language models after each item.
        priority: (room,) of each item.
        heap: (room,) items that wait, a heap by priority.
    """

    cubes: Records
    items: Records
    states: Integers
    priority: Floats
    heap: Integers
