"""The data of the search: tuples of arrays, and records, for compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Floats, Integers, Records

if TYPE_CHECKING:
    from moses_feature.decoder.system import System


WINDOW = 60
"""How far behind the first gap source words may be covered, in words."""
PLAIN, WITH_BASE, TREE = range(3)
"""Kinds of contexts of neural models; see `Contexts`."""
MONOTONE, SWAP, DISCONTINUOUS_LEFT, DISCONTINUOUS_RIGHT = range(4)
"""Orientations as `mslr` models distinguish them; other models merge some of them."""


PLACE_BITS = 20
"""A state of an operation sequence model has a place in these bits, behind its own state."""
OPERATION_VALUES = 5
TRANSLATED, CONTINUED, INSERTED, DELETED = range(4)
"""Kinds of operations; see `operations.Step`."""


class Operations(NamedTuple):
    """The operations of the phrase options, for an operation sequence model.

    Attributes:
        model: its number among the language models; that of the first tree model if there is none.
        offsets: (n + 1,) where the operations of each option begin.
        steps: (operations, 3) their places, kinds and words; see `operations.Step`.
        words: the numbers of `operations.WORDS`.
        values: how many it has: 5, or log p alone.
        weights: (5,) of its values; 0 for those that it does not have.
    """

    model: int
    offsets: Integers
    steps: Integers
    words: Integers
    values: int
    weights: Floats


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
        left: (m, words) scores of the words of the phrase behind this one, likewise. Joint models
            have neither.
        joint: the number of the first joint model.
        trees: the number of the first tree model, behind the joint ones and that of operations.
        history: (tree models,) the number of last words by which hypotheses recombine.
        affiliation_offsets: (n + 1,) where the affiliations of each option begin.
        affiliations: for each target word of all options, the source word affiliated to it,
            counted from the first one of the span.
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
    joint: int
    trees: int
    history: Integers
    affiliation_offsets: Integers
    affiliations: Integers
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


class Limits(NamedTuple):
    """The limits of the search.

    Attributes:
        pops: hypotheses popped from the cubes for each stack.
        stack: hypotheses of a stack that are expanded.
        distortion: the longest jump in source words, at most `WINDOW`.
    """

    pops: int
    stack: int
    distortion: int


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

CUBE = np.dtype(
    [
        ("group", "i8"),  # the group whose hypotheses are the rows
        ("start", "i8"),  # of the span
        ("length", "i8"),  # of the span
        ("phrase", "i8"),  # the source phrase whose options are the columns
        ("gap", "i8"),  # coverage of the new hypotheses
        ("mask", "i8"),
        ("future", "f8"),  # estimate for the words that the new hypotheses leave uncovered
    ]
)

ITEM = np.dtype(
    [
        ("cube", "i8"),
        ("row", "i8"),
        ("column", "i8"),
        ("score", "f8"),  # of the new hypothesis, -inf if it is not allowed
        ("scored", "i8"),  # 1 if scored by the language models too, 0 for a corner in waiting
    ]
)
"""A place in a cube: a hypothesis (row) and an option (column)."""


ENTRY = np.dtype(
    [
        ("key", "i8"),  # state and word, 0 for a free slot
        ("score", "f8"),  # natural log
        ("following", "i8"),  # the state after the word
    ]
)
"""A cached look-up; one record, so that reading it touches one or two cache lines."""


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


class Groups(NamedTuple):
    """The hypotheses that are expanded, grouped by stack, coverage and last covered word.

    Attributes:
        members: hypotheses, group after group, best first.
        first: where each group begins, and the end of the last one.
        of_stack: (stacks + 1,) where the groups of each stack begin.
    """

    members: Integers
    first: Integers
    of_stack: Integers


class Constraints(NamedTuple):
    """What limits the order of a sentence; see `reordering_constraints`.

    Attributes:
        walls: (n,) for each word whether there is a wall behind it, and in which zone; empty if
            there are neither walls nor zones.
        zones: (zones, 2) first and last word.
    """

    walls: Integers
    zones: Integers


class Task(NamedTuple):
    """The sentence to translate, and how.

    Attributes:
        phrases: (n, longest) the source phrase of 1, 2, … words that begins at each word; -1 for
            none.
        windows: (joint models, n) numbers of the windows around the words.
        roots: (tree models,) their states at the beginning of the sentence.
        limits: the limits of the search.
        reference: the words of the reference, if `forced`.
        forced: whether the reference is the only translation allowed.
        constraints: walls and zones.
    """

    phrases: Integers
    windows: Integers
    roots: Integers
    limits: Limits
    reference: Integers
    forced: bool
    constraints: Constraints


class Contexts(NamedTuple):
    """Contexts of one or more models.

    Attributes:
        rows: (capacity, 1 + width) the number of the model, then the context. For a neural model:
            the ids of the words before, the nearest one last, 0 in front if its contexts are
            shorter than `width`. For KenLM: the bytes of its state.
        slots: a hash table of row + 1; 0 for a free slot.
        used: (1,) rows in use.
        widths: (models,) the width of each model's contexts; 0 if it has none here.
        kinds: (models,) `PLAIN`: the words before; `WITH_BASE`: in front of them the number of a
            base, 0 for none (`moses_feature.cslm.feed_forward`); `TREE`: the number of the parent
            context, negative for a root, and the last word
            (`moses_feature.sentences.decoder_feature`).
    """

    rows: NDArray[np.int32]
    slots: NDArray[np.int32]
    used: NDArray[np.int64]
    widths: NDArray[np.int64]
    kinds: Integers


class Lookups(NamedTuple):
    """The language model look-ups of compiled code.

    The number of a state is 2 * its row in `states` for KenLM, 2 * its row in `contexts` + 1 for
    neural models.

    Attributes:
        entries: (slots,) `ENTRY` records, a hash table.
        used: (1,) slots in use.
        answer: (1,) where Python leaves the state after a new look-up.
        states: KenLM's states.
        kenlm_models, kenlm_scores: (models,) addresses of KenLM's models and of the functions that
            score a word; empty if Python must be asked.
        contexts: contexts of neural models.
        networks: (models,) `NETWORK` records of neural models that answer at once; else zeros.
        ids: (models, words) the ids of the target words.
        guesses: (models, words) log p of the target words: out of context at first, then a moving
            average of their scores.
        pairs: (PAIRS,) by a hash of model, word before and word: the last score of the pair, or
            `NOT_KNOWN` of `lookups`.
        buffer: (n, 2) states and words that wait to be scored.
        results: (n,) their scores, once known.
        buffered: (1,) the number of n-grams in the buffer.
        guessed: (1,) answers that were guesses since it was last set to 0.
        crowded: (1,) whether the table, the states or the contexts were full.
        scored: (1,) n-grams that neural models have scored.
        ask: the address of the function by which Python answers.
        flush: the address of the function that scores the buffer.
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
    """A task, the options under the weights, and the language model look-ups."""

    task: Task
    options: Options
    lookups: Lookups


class Estimates(NamedTuple):
    """The best scores that uncovered words can still add.

    Attributes:
        future: (n + 1, WINDOW + 1) for the 0, 1, … words that begin at each word.
        rest: (n + 1,) for all words from each word to the end.
    """

    future: Floats
    rest: Floats


class Frontier(NamedTuple):
    """The items of the cubes that lead into a stack, as far as they have been reached.

    Attributes:
        cubes: (cubes,) `CUBE` records.
        items: (capacity,) `ITEM` records, the corner of each cube first.
        states: (capacity, m) language model states after each item.
        priority: (capacity,) of each item.
        heap: (capacity,) the waiting items, a heap by priority.
    """

    cubes: Records
    items: Records
    states: Integers
    priority: Floats
    heap: Integers


DEFAULT_POPS = 1000
DEFAULT_STACK = 200
"""The defaults of Moses (`moses/TypeDef.h`)."""


@dataclass(frozen=True)
class SearchLimits:
    """The limits of the search; None takes the value of the ini.

    Attributes:
        pops: hypotheses popped from the cubes for each stack.
        stack: hypotheses of a stack that are expanded.
    """

    pops: int | None = None
    stack: int | None = None

    def of(self, system: System) -> Limits:
        """Return the limits for a system, with the ini's values or Moses' defaults for None."""
        return Limits(
            self.pops or system.settings.get("cube-pruning-pop-limit", DEFAULT_POPS),
            self.stack or system.settings.get("stack", DEFAULT_STACK),
            system.distortion_limit,
        )
