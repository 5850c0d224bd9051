"""Phrase-based search by cube pruning (Chiang 2007; Huang and Chiang 2007), compiled.

A stack holds the hypotheses that cover the same number of source words. The hypotheses of a stack
that have the same coverage and end at the same word form a group. A group and a span that may
follow it form a cube: its rows are the group's hypotheses, its columns are the options of the span,
both best first. A heap over all cubes that lead into a stack hands out new hypotheses until the pop
limit is reached. Reordering limits and orientations follow `moses/SearchCubePruning.cpp` and
`moses/FF/LexicalReordering/LRModel.cpp`.

Coverage is the position of the first gap and a bit mask of the words from there on: under a
distortion limit all covered words are close behind the first gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_feature.decoder.estimates import (
    Estimates,
    estimates_of,
    uncovered_score,
    words_to_skip,
)
from moses_feature.decoder.graph import HYPOTHESIS, Graph, Hypotheses
from moses_feature.decoder.limits import SearchBounds
from moses_feature.decoder.lookups import (
    END_OF_SENTENCE,
    Lookups,
    known_score,
    new_score,
    score_word,
)
from moses_feature.decoder.operations import weighted_operations
from moses_feature.decoder.options import WINDOW, Options
from moses_feature.decoder.reordering import (
    DISCONTINUOUS_LEFT,
    DISCONTINUOUS_RIGHT,
    MONOTONE,
    SWAP,
)
from moses_feature.decoder.reordering_constraints import Constraints, is_allowed
from moses_feature.decoder.stacks import (
    Groups,
    add_groups,
    best_first,
    heapify,
    no_groups,
    pop,
    push,
    recombine,
    sink,
)
from moses_feature.runtime.arrays import Floats, Integers, Record, Records
from moses_feature.runtime.compiled import INT_0, compiled, helper
from moses_feature.runtime.hash_table import copy, grown, size_for

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


class SearchTask(NamedTuple):
    """The sentence to translate, and how.

    Attributes:
        phrases: (n, longest) the source phrase of 1, 2, … words that begins at each word; -1 for
            none.
        limits: the limits of the search.
        reference: the words of the reference, if `forced`.
        forced: whether the reference is the only translation allowed.
        constraints: walls and zones.
    """

    phrases: Integers
    limits: SearchBounds
    reference: Integers
    forced: bool
    constraints: Constraints


class Problem(NamedTuple):
    """A task, the options under the weights, and the language model look-ups."""

    task: SearchTask
    options: Options
    lookups: Lookups


class Frontier(NamedTuple):
    """The items of the cubes that lead into a stack, as far as they have been reached.

    Attributes:
        items: (capacity,) `ITEM` records, the corner of each cube first.
        states: (capacity, m) language model states after each item.
        priority: (capacity,) of each item.
        heap: (capacity,) the waiting items, a heap by priority.
    """

    items: Records
    states: Integers
    priority: Floats
    heap: Integers


class SearchProgress(NamedTuple):
    """A search in progress.

    Attributes:
        at: (2,) the stack that is to be filled next, and the number of hypotheses before it.
        groups: those of the stacks before.
        table: memory for a hash table of hypotheses.
        estimates: of the words that are not covered.
    """

    at: Integers
    groups: Groups
    table: Integers
    estimates: Estimates


@compiled
def begin(task: SearchTask, options: Options, hypotheses: Hypotheses) -> SearchProgress:
    """Return the beginning of a search for the best translations of a sentence; see `advance`."""
    size, limits = len(task.phrases), task.limits
    # The empty hypothesis, alone in its stack and in its group.
    _make_empty(hypotheses, options)
    groups = no_groups(1 + size * min(limits.stack, limits.pops), size)
    table, at = np.empty(size_for(limits.pops), np.int64), np.empty(2, np.int64)
    at[:] = 1
    add_groups(np.zeros(1, np.int64), INT_0, table, hypotheses, groups)
    return SearchProgress(at, groups, table, estimates_of(task.phrases, options))


@compiled
def advance(
    task: SearchTask,
    options: Options,
    hypotheses: Hypotheses,
    progress: SearchProgress,
    lookups: Lookups,
) -> Graph:
    """Search for the best translations of a sentence of one word or more.

    Where a stack was filled with guesses of neural models, or the tables of `lookups` are full, the
    search stops: then it is to be called again with true scores, and fills that stack again. See
    `LanguageModels.settled`.

    Args:
        task: the sentence and the limits.
        options: the phrase options under the weights.
        hypotheses: memory for `most_hypotheses`, which will hold the graph.
        progress: from `begin`; changed.
        lookups: the language model look-ups.
    """
    size, limits = len(task.phrases), task.limits
    problem = Problem(task, options, lookups)
    groups, table, at = progress.groups, progress.table, progress.at
    cubes = np.empty(1024, CUBE)
    while at[0] <= size:
        stack, made = at
        cubes, count = _cubes_into(stack, problem, progress.estimates, hypotheses, groups, cubes)
        table[:] = -1
        made = _fill_stack(made, stack == size, problem, hypotheses, groups, cubes[:count], table)
        if lookups.guessed[0] > 0 or lookups.ngrams.crowded[0] > 0:
            break
        at[0], at[1] = stack + 1, made
        if stack < size:
            # The table holds the winners of recombination; the best of them are expanded.
            best = best_first(table, hypotheses.records)
            add_groups(best[: limits.stack], stack, table, hypotheses, groups)
    return Graph(hypotheses.records[: at[1]], best_first(table, hypotheses.records))


def most_hypotheses(words: int, limits: SearchBounds) -> int:
    """Return the largest number of hypotheses of a search for a sentence of `words` words."""
    return 1 + words * limits.pops


def room_for(count: int, models: int) -> Hypotheses:
    """Return memory for `count` hypotheses under `models` language models."""
    return Hypotheses(np.empty(count, HYPOTHESIS), np.empty((count, models), dtype=np.int64))


@helper(inline=False)
def _make_empty(hypotheses: Hypotheses, options: Options) -> None:
    """Make the first hypothesis, which is empty."""
    copy(options.begin_states, hypotheses.states[0])
    first = hypotheses.records[0]
    first.score = first.total = 0.0
    first.previous = first.option = first.start = first.end = first.next_worse = -1
    first.gap = first.mask = first.written = 0


@helper
def orientation(previous_start: int, previous_end: int, start: int, end: int) -> int:
    """Return the orientation of a span to the one before (`LRModel::GetOrientation`)."""
    if start == previous_end + 1:
        return MONOTONE
    if previous_end < 0:  # the first phrase, not at the beginning
        return DISCONTINUOUS_RIGHT
    if end + 1 == previous_start:
        return SWAP
    return DISCONTINUOUS_RIGHT if start > previous_end else DISCONTINUOUS_LEFT


@helper
def _known_phrase_score(
    entries: Records,
    words: Integers,
    empty_states: Integers,
    left: Floats,
    state: int,
    complete: bool,
) -> tuple[float, int]:
    """Return the score of a phrase after a state, and the state after it.

    The state is below 0 if `entries` do not know the score of a word.

    Args:
        entries: known scores.
        words: (n,) the words of the phrase.
        empty_states: (n,) the state after each word, if the phrase has no context.
        left: (n,) scores of the words behind each word, likewise.
        state: before the phrase.
        complete: whether the sentence ends behind it.
    """
    total = 0.0
    for place in range(len(words)):
        score, state = known_score(entries, state, words[place])
        if state < 0:
            return total, state
        total += score
        if state == empty_states[place]:  # the context no longer matters
            total += left[place]
            state = empty_states[-1]
            break
    if complete and len(words) > 0:  # Moses scores no </s> after a phrase without words
        score, end = known_score(entries, state, END_OF_SENTENCE)
        if end < 0:
            return total, end
        total += score
    return total, state


@helper(inline=False)
def _phrase_score(
    lookups: Lookups,
    words: Integers,
    empty_states: Integers,
    left: Floats,
    state: int,
    complete: bool,
) -> tuple[float, int]:
    """Return what `_known_phrase_score` does, and ask the models for what is not known."""
    entries, total = lookups.ngrams.entries, 0.0
    for place in range(len(words)):
        score, after = known_score(entries, state, words[place])
        if after < 0:
            score, after = new_score(lookups, state, words[place])
        total, state = total + score, after
        if state == empty_states[place]:
            total += left[place]
            state = empty_states[-1]
            break
    if complete and len(words) > 0:
        score, _ = score_word(lookups, state, END_OF_SENTENCE)
        total += score
    return total, state


@helper(inline=False)
def _score_operations(
    problem: Problem, option: int, start: int, before: Record, state: int
) -> tuple[float, int]:
    """Return the score of an option by a model of operations, and the state after it."""
    of_phrase = option, start, before.gap, before.mask
    return weighted_operations(problem.lookups, problem.options, *of_phrase, state)


@helper
def _may_follow(problem: Problem, position: int, target: int, complete: bool) -> bool:
    """Return whether a target phrase continues the reference, and ends it if `complete`."""
    options, reference = problem.options, problem.task.reference
    first, last = options.word_offsets[target], options.word_offsets[target + 1]
    end = position + last - first
    if end > len(reference) or (complete and end < len(reference)):
        return False
    for place in range(first, last):
        if reference[position + place - first] != options.words[place]:
            return False
    return True


@helper(inline=False)
def _cubes_into(
    stack: int,
    problem: Problem,
    estimates: Estimates,
    hypotheses: Hypotheses,
    groups: Groups,
    cubes: Records,
) -> tuple[Records, int]:
    """Find the cubes that lead into a stack.

    Return the array of cubes, which is `cubes` or a larger copy, and the number of cubes.
    """
    task, options = problem.task, problem.options
    size, width = task.phrases.shape
    limit = task.limits.distortion
    constrained = len(task.constraints.walls) > 0
    count = 0
    for length in range(1, min(width, stack) + 1):
        first, last = groups.of_stack[stack - length], groups.of_stack[stack - length + 1]
        for group in range(first, last):
            head = hypotheses.records[groups.members[groups.first[group]]]
            # Coverage: all words before `gap` are covered, `gap` is not; bit i of `mask` says
            # whether word gap + i is covered. Bit 0 is thus 0.
            gap, mask = head.gap, head.mask
            for start in range(gap, min(gap + WINDOW - length, size - length) + 1):
                if start > gap and start + length - gap > limit:
                    break  # beyond the limit one could not jump back to the first gap
                # The bits of a span of `length` words. A span that overlaps covered words, is
                # too far a jump, or has no options makes no cube.
                span = ((1 << length) - 1) << (start - gap)
                phrase = task.phrases[start, length - 1]
                if (
                    abs(head.end + 1 - start) > limit
                    or mask & span != 0
                    or phrase < 0
                    or options.size[phrase] == 0
                ):
                    continue
                if constrained and not is_allowed(
                    task.constraints, limit, gap, mask, start, length
                ):
                    continue
                if count == len(cubes):
                    cubes = grown(cubes, 2 * count)
                cube = cubes[count]
                cube.group = group
                cube.start = start
                cube.length = length
                cube.phrase = phrase
                # If the span closed the gap, move on to the first word that is not covered:
                # each step drops a covered word from the mask.
                new_gap, new_mask = gap, mask | span
                while new_mask & 1 == 1:
                    new_mask >>= 1
                    new_gap += 1
                cube.gap = new_gap
                cube.mask = new_mask
                to_skip = words_to_skip(new_gap, new_mask, start + length, size)
                of_words = uncovered_score(estimates, new_gap, new_mask)
                cube.future = of_words - options.distortion_weight * to_skip
                count += 1
    return cubes, count


@helper(inline=False)
def _fill_stack(  # noqa: C901
    made: int,
    complete: bool,
    problem: Problem,
    hypotheses: Hypotheses,
    groups: Groups,
    cubes: Records,
    table: Integers,
) -> int:
    """Pop hypotheses from the cubes and recombine them; return the new number of hypotheses.

    numba counts references to each array of a tuple at every use that it cannot see through, which
    takes longer than the search. So the arrays that the innermost code needs have names of their
    own here, the models are asked here, and what is rarely needed is called out of line.

    Args:
        made: the number of hypotheses before.
        complete: whether it is the last stack.
        problem: the task, the options and the language models.
        hypotheses: all hypotheses; new ones are written behind the first `made`.
        groups: the groups of the stacks before.
        cubes: the cubes that lead into this stack.
        table: an empty hash table for the new hypotheses.
    """
    pops, options, forced = problem.task.limits.pops, problem.options, problem.task.forced
    order, first_option, size = options.order, options.first, options.size
    fixed, estimate, target_of = options.fixed, options.estimate, options.target
    backward, forward = options.backward, options.forward
    word_offsets, words = options.word_offsets, options.words
    empty_states, left, lm_weights = options.empty_states, options.left, options.lm_weights
    distortion, lookups = options.distortion_weight, problem.lookups
    entries = lookups.ngrams.entries
    records, all_states = hypotheses.records, hypotheses.states
    members, first_member = groups.members, groups.first
    items, states, priority, heap = _frontier_of(cubes, 2 * pops + 2, all_states.shape[1])
    _begin_with_corners(problem, hypotheses, groups, cubes, items, priority)
    heapify(heap, priority, len(cubes))
    in_heap = used = len(cubes)
    taken = 0
    while in_heap > 0 and taken < pops:
        number = heap[0]
        item = items[number]
        # A corner at the top gets its true score instead of its estimate, and sinks to its new
        # place; it is popped only if it comes to the top again. An item that is popped makes room
        # for its neighbours.
        popped = item.scored == 1
        first, last = number, number + 1
        if popped:
            taken += 1
            cube = cubes[item.cube]
            rows = first_member[cube.group + 1] - first_member[cube.group]
            first, last = used, _add_neighbours(item, used, items, size[cube.phrase], rows)
            used = last
        # The only place where items are scored: each further one would compile all models again.
        for new in range(first, last):
            fresh = items[new]
            cube = cubes[fresh.cube]
            hypothesis = members[first_member[cube.group] + fresh.row]
            option = order[first_option[cube.phrase] + fresh.column]
            target = target_of[option]
            score = _score_without_models(
                hypothesis, cube, option, records, fixed, backward, forward, distortion
            )
            fresh.scored = 1
            fresh.score = -np.inf
            priority[new] = score + estimate[option] - fixed[option] + cube.future
            # In a forced search, what does not continue the reference stays in its cube, so that
            # its neighbours are reached.
            if not forced or _may_follow(problem, records[hypothesis].written, target, complete):
                begin, end = word_offsets[target], word_offsets[target + 1]
                for model in range(len(lm_weights)):
                    before = all_states[hypothesis, model]
                    if model < len(left):
                        of_phrase = words[begin:end], empty_states[model, begin:end]
                        given = *of_phrase, left[model, begin:end], before, complete
                        of_model, after = _known_phrase_score(entries, *given)
                        if after < 0:
                            of_model, after = _phrase_score(lookups, *given)
                    else:
                        of_model, after = _score_operations(
                            problem, option, cube.start, records[hypothesis], before
                        )
                    score += lm_weights[model] * of_model
                    states[new, model] = after
                fresh.score = score
                priority[new] = score + cube.future
            if new == first:  # a neighbour scores nearly as well: replace the top
                heap[0] = new
                sink(heap, priority, in_heap, np.int64(0))
            else:
                push(heap, priority, in_heap, new)
                in_heap += 1
        if not popped:
            continue
        if first == last:
            pop(heap, priority, in_heap)
            in_heap -= 1
        if item.score > -np.inf:  # else it does not continue the reference
            cube = cubes[item.cube]
            hypothesis = members[first_member[cube.group] + item.row]
            option = order[first_option[cube.phrase] + item.column]
            _set_hypothesis(records[made], hypothesis, option, cube, item.score, priority[number])
            if forced:
                _set_written(records, made, options)
            copy(states[number], all_states[made])
            recombine(made, table, records, all_states, options.forward_class, options.orientation)
            made += 1
    return made


@helper(inline=False)
def _begin_with_corners(
    problem: Problem,
    hypotheses: Hypotheses,
    groups: Groups,
    cubes: Records,
    items: Records,
    priority: Floats,
) -> None:
    """Make the corner of each cube its first item: the best hypothesis and the best option.

    Its priority is at first an estimate without language model context, since many corners never
    reach the top of the heap.
    """
    options = problem.options
    for number in range(len(cubes)):
        cube = cubes[number]
        items[number].cube = number
        option = options.order[options.first[cube.phrase]]
        score = _score_without_models(
            groups.members[groups.first[cube.group]],
            cube,
            option,
            hypotheses.records,
            options.fixed,
            options.backward,
            options.forward,
            options.distortion_weight,
        )
        best = score + options.estimate[option] - options.fixed[option]
        priority[number] = best + cube.future


@helper(inline=False)
def _set_written(records: Records, number: int, options: Options) -> None:
    """Set how many words of the reference a hypothesis of a forced search has written."""
    record = records[number]
    target = options.target[record.option]
    length = options.word_offsets[target + 1] - options.word_offsets[target]
    record.written = records[record.previous].written + length


@helper(inline=False)
def _frontier_of(cubes: Records, more: int, models: int) -> Frontier:
    """Return a frontier with a capacity of the cubes' corners and `more` other items."""
    room = len(cubes) + more
    heap = np.empty(room, np.int64)
    for place in range(room):
        heap[place] = place
    return Frontier(np.zeros(room, ITEM), np.empty((room, models), np.int64), np.empty(room), heap)


@helper
def _add_neighbours(item: Record, used: int, items: Records, options: int, rows: int) -> int:
    """Make unscored items of an item's neighbours; return the new number of items.

    These are the next one of its row, and from the first column the one below: each item is reached
    in one way only.

    Args:
        item: the item, in a cube of `rows` hypotheses and `options` options.
        used: the number of items.
        items: all items.
        options: see above.
        rows: see above.
    """
    right = item.column + 1 < options
    below = item.column == 0 and item.row + 1 < rows
    for down in range(0 if right else 1, 2 if below else 1):
        new = items[used]
        new.cube = item.cube
        new.row = item.row + down
        new.column = item.column + 1 - down
        used += 1
    return used


@helper
def _score_without_models(
    hypothesis: int,
    cube: Record,
    option: int,
    records: Records,
    fixed: Floats,
    backward: Floats,
    forward: Floats,
    distortion: float,
) -> float:
    """Return the score of a hypothesis extended by an option, without the language models."""
    before = records[hypothesis]
    end = cube.start + cube.length - 1
    how = orientation(before.start, before.end, cube.start, end)
    score: float = before.score + fixed[option] + backward[option, how]
    score -= distortion * abs(before.end + 1 - cube.start)
    if hypothesis > 0:
        score += forward[before.option, how]
    return score


@helper
def _set_hypothesis(
    made: Record, previous: int, option: int, cube: Record, score: float, total: float
) -> None:
    """Make a hypothesis of an item of a cube."""
    made.score = score
    made.total = total
    made.previous = previous
    made.option = option
    made.start = cube.start
    made.end = cube.start + cube.length - 1
    made.gap = cube.gap
    made.mask = cube.mask
    made.written = 0
    made.next_worse = -1
