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

import numpy as np

from moses_feature.decoder.estimates import estimates_of, uncovered_score, words_to_skip
from moses_feature.decoder.lookups import END_OF_SENTENCE, flush, score_word
from moses_feature.decoder.operations import weighted_operations
from moses_feature.decoder.phrase_scores import score_beside, score_words
from moses_feature.decoder.records import (
    CUBE,
    DISCONTINUOUS_LEFT,
    DISCONTINUOUS_RIGHT,
    HYPOTHESIS,
    ITEM,
    MONOTONE,
    SWAP,
    WINDOW,
    Estimates,
    Frontier,
    Graph,
    Groups,
    Hypotheses,
    Limits,
    Lookups,
    Options,
    Problem,
    Task,
)
from moses_feature.decoder.reordering_constraints import is_allowed
from moses_feature.decoder.stacks import (
    add_groups,
    best_first,
    heapify,
    no_groups,
    pop,
    push,
    recombine,
    sink,
)
from moses_feature.runtime.arrays import Integers, Record, Records
from moses_feature.runtime.compiled import compiled, inner, part
from moses_feature.runtime.hash_table import grown, size_for


@compiled
def search(task: Task, options: Options, hypotheses: Hypotheses, lookups: Lookups) -> Graph:
    """Search for the best translations of a sentence of one word or more.

    Args:
        task: the sentence and the limits.
        options: the phrase options under the weights.
        hypotheses: memory for `most_hypotheses`, which will hold the graph.
        lookups: the language model look-ups.
    """
    size = len(task.phrases)
    limits = task.limits
    problem = Problem(task, options, lookups)
    estimates = estimates_of(task.phrases, options)
    # The empty hypothesis, alone in its stack and in its group.
    _make_empty(hypotheses, options, task.roots)
    groups = no_groups(1 + size * min(limits.stack, limits.pops), size)
    table = np.empty(size_for(limits.pops), np.int64)
    best = np.zeros(1, np.int64)
    add_groups(best, 0, table, hypotheses, groups)
    made = 1
    cubes = np.empty(1024, CUBE)
    for stack in range(1, size + 1):
        cubes, count = _cubes_into(stack, problem, estimates, hypotheses, groups, cubes)
        # Neural models may have answered with guesses. When the stack is full, their true scores
        # are computed, and the stack is filled again, until it used no guess.
        guessed = True
        while guessed:
            table[:] = -1
            lookups.guessed[0] = 0
            filled = _fill_stack(
                made, stack == size, problem, hypotheses, groups, cubes[:count], table
            )
            guessed = lookups.guessed[0] > 0 and lookups.crowded[0] == 0 and flush(lookups)
        made = filled
        if lookups.crowded[0]:
            break  # `LanguageModels.settled` repeats the search with larger tables
        # The table holds the winners of recombination; the best of them are expanded.
        best = best_first(table, hypotheses.records)
        add_groups(best[: limits.stack], stack, table, hypotheses, groups)
    return Graph(hypotheses.records[:made], best)


def most_hypotheses(words: int, limits: Limits) -> int:
    """Return the largest number of hypotheses of a search for a sentence of `words` words."""
    return 1 + words * limits.pops


def room_for(count: int, models: int) -> Hypotheses:
    """Return memory for `count` hypotheses under `models` language models."""
    return Hypotheses(np.empty(count, HYPOTHESIS), np.empty((count, models), dtype=np.int64))


@part
def _make_empty(hypotheses: Hypotheses, options: Options, roots: Integers) -> None:
    """Make the first hypothesis, which is empty."""
    hypotheses.states[0, : options.trees] = options.begin_states
    hypotheses.states[0, options.trees :] = roots
    first = hypotheses.records[0]
    first.score = first.total = 0.0
    first.previous = first.option = first.start = first.end = first.next_worse = -1
    first.gap = first.mask = first.written = 0


@inner
def orientation(previous_start: int, previous_end: int, start: int, end: int) -> int:
    """Return the orientation of a span to the one before (`LRModel::GetOrientation`)."""
    if start == previous_end + 1:
        return MONOTONE
    if previous_end < 0:  # the first phrase, not at the beginning
        return DISCONTINUOUS_RIGHT
    if end + 1 == previous_start:
        return SWAP
    return DISCONTINUOUS_RIGHT if start > previous_end else DISCONTINUOUS_LEFT


@inner
def _language_model_score(
    problem: Problem, model: int, target: int, state: int, complete: bool
) -> tuple[float, int]:
    """Return the score of a target phrase after a state, and the state after it."""
    options, lookups = problem.options, problem.lookups
    total = 0.0
    first, last = options.word_offsets[target], options.word_offsets[target + 1]
    for place in range(first, last):
        score, state = score_word(lookups, state, options.words[place])
        total += score
        if state == options.empty_states[model, place]:  # the context no longer matters
            total += options.left[model, place]
            state = options.empty_states[model, last - 1]
            break
    if complete and last > first:  # Moses scores no </s> after a phrase without words
        score, _ = score_word(lookups, state, END_OF_SENTENCE)
        total += score
    return total, state


@inner
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


@part
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
                if constrained and not is_allowed(task, gap, mask, start, length):
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


@part
def _fill_stack(
    made: int,
    complete: bool,
    problem: Problem,
    hypotheses: Hypotheses,
    groups: Groups,
    cubes: Records,
    table: Integers,
) -> int:
    """Pop hypotheses from the cubes and recombine them; return the new number of hypotheses.

    Args:
        made: the number of hypotheses before.
        complete: whether it is the last stack.
        problem: the task, the options and the language models.
        hypotheses: all hypotheses; new ones are written behind the first `made`.
        groups: the groups of the stacks before.
        cubes: the cubes that lead into this stack.
        table: an empty hash table for the new hypotheses.
    """
    pops, options = problem.task.limits.pops, problem.options
    frontier = _frontier_of(cubes, 2 * pops + 2, hypotheses.states.shape[1])
    priority, heap = frontier.priority, frontier.heap
    # The heap is a max-heap by priority: score plus the estimate for uncovered words. Each cube
    # waits with its corner, the best hypothesis and the best option (row 0, column 0), or with
    # the items next to those that were popped. A corner's priority is at first an estimate
    # without language model context, since many corners never reach the top.
    _estimate_corners(frontier, options, hypotheses, groups)
    heapify(heap, priority, len(cubes))
    in_heap = used = len(cubes)
    taken = 0
    while in_heap > 0 and taken < pops:
        number = heap[0]
        item = frontier.items[number]
        # A corner at the top gets its true score in place of its estimate, and sinks to its new
        # place; it is popped only if it comes to the top again. An item that is popped makes room
        # for its neighbours.
        popped = item.scored == 1
        first, last = number, number + 1
        if popped:
            taken += 1
            first, last = used, _add_neighbours(item, used, frontier, options, groups)
            used = last
        # The only place where items are scored: each further one would compile all models again.
        for new in range(first, last):
            priority[new] = _score(new, problem, hypotheses, groups, frontier, complete)
            if new == first:  # a neighbour scores nearly as well: replace the top
                heap[0] = new
                sink(heap, priority, in_heap, 0)
            else:
                push(heap, priority, in_heap, new)
                in_heap += 1
        if not popped:
            continue
        if first == last:
            pop(heap, priority, in_heap)
            in_heap -= 1
        if item.score > -np.inf:  # else it does not continue the reference
            _add_hypothesis(made, number, problem, hypotheses, groups, frontier)
            recombine(made, table, hypotheses, problem)
            made += 1
    return made


@part
def _frontier_of(cubes: Records, more: int, models: int) -> Frontier:
    """Return a frontier with a capacity of the cubes' corners and `more` other items."""
    room = len(cubes) + more
    return Frontier(
        cubes,
        np.zeros(room, ITEM),
        np.empty((room, models), np.int64),
        np.empty(room),
        np.arange(room),
    )


@inner
def _add_neighbours(
    item: Record, used: int, frontier: Frontier, options: Options, groups: Groups
) -> int:
    """Make unscored items of an item's neighbours; return the new number of items.

    These are the next one of its row, and from the first column the one below: each item is reached
    in one way only.
    """
    cube = frontier.cubes[item.cube]
    rows = groups.first[cube.group + 1] - groups.first[cube.group]
    right = item.column + 1 < options.size[cube.phrase]
    below = item.column == 0 and item.row + 1 < rows
    for down in range(0 if right else 1, 2 if below else 1):
        new = frontier.items[used]
        new.cube = item.cube
        new.row = item.row + down
        new.column = item.column + 1 - down
        used += 1
    return used


@inner
def _estimate_corners(
    frontier: Frontier, options: Options, hypotheses: Hypotheses, groups: Groups
) -> None:
    """Make an unscored item of the corner of each cube, with an estimate as its priority."""
    for number in range(len(frontier.cubes)):
        cube, item = frontier.cubes[number], frontier.items[number]
        item.cube = number
        hypothesis = groups.members[groups.first[cube.group]]
        option = options.order[options.first[cube.phrase]]
        score = _score_without_models(hypothesis, cube, option, hypotheses.records, options)
        of_models = options.estimate[option] - options.fixed[option]
        frontier.priority[number] = score + of_models + cube.future


@inner
def _score_without_models(
    hypothesis: int, cube: Record, option: int, hypotheses: Records, options: Options
) -> float:
    """Return the score of a hypothesis extended by an option, without the language models."""
    before = hypotheses[hypothesis]
    end = cube.start + cube.length - 1
    how = orientation(before.start, before.end, cube.start, end)
    score: float = before.score + options.fixed[option] + options.backward[option, how]
    score -= options.distortion_weight * abs(before.end + 1 - cube.start)
    if hypothesis > 0:
        score += options.forward[before.option, how]
    return score


@inner
def _score(
    number: int,
    problem: Problem,
    hypotheses: Hypotheses,
    groups: Groups,
    frontier: Frontier,
    complete: bool,
) -> float:
    """Score an item with all features, and return its priority."""
    options = problem.options
    item = frontier.items[number]
    cube = frontier.cubes[item.cube]
    hypothesis = groups.members[groups.first[cube.group] + item.row]
    option = options.order[options.first[cube.phrase] + item.column]
    score = _score_without_models(hypothesis, cube, option, hypotheses.records, options)
    target = options.target[option]
    item.scored = 1
    if problem.task.forced and not _may_follow(
        problem, hypotheses.records[hypothesis].written, target, complete
    ):  # it stays in its cube, so that its neighbours are reached
        item.score = -np.inf
        return score + options.estimate[option] - options.fixed[option] + cube.future
    for model in range(len(options.lm_weights)):
        state = hypotheses.states[hypothesis, model]
        if model < options.joint:
            of_model, state = _language_model_score(problem, model, target, state, complete)
        elif model >= options.trees:
            of_model, state = score_words(problem.lookups, options, target, state, complete)
        elif model == options.operations.model:
            before = hypotheses.records[hypothesis]
            of_phrase = option, cube.start, before.gap, before.mask
            of_model, state = weighted_operations(problem.lookups, options, *of_phrase, state)
        else:
            windows = problem.task.windows[model - options.joint]
            of_model, state = score_beside(
                problem.lookups, options, windows, option, cube.start, state
            )
        score += options.lm_weights[model] * of_model
        frontier.states[number, model] = state
    item.score = score
    return score + cube.future


@inner
def _add_hypothesis(
    new: int,
    number: int,
    problem: Problem,
    hypotheses: Hypotheses,
    groups: Groups,
    frontier: Frontier,
) -> None:
    """Make a hypothesis of an item."""
    options = problem.options
    item = frontier.items[number]
    cube = frontier.cubes[item.cube]
    hypothesis = groups.members[groups.first[cube.group] + item.row]
    option = options.order[options.first[cube.phrase] + item.column]
    made = hypotheses.records[new]
    made.score = item.score
    made.total = frontier.priority[number]
    made.previous = hypothesis
    made.option = option
    made.start = cube.start
    made.end = cube.start + cube.length - 1
    made.gap = cube.gap
    made.mask = cube.mask
    made.written = 0
    made.next_worse = -1
    if problem.task.forced:
        target = options.target[option]
        length = options.word_offsets[target + 1] - options.word_offsets[target]
        made.written = hypotheses.records[hypothesis].written + length
    for model in range(hypotheses.states.shape[1]):
        hypotheses.states[new, model] = frontier.states[number, model]
