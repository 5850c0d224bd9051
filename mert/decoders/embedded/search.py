"""Phrase-based search by cube pruning (Chiang 2007; Huang and Chiang 2007), compiled.

A stack holds the hypotheses that cover the same number of source words. The hypotheses of a stack
that cover the same words and end at the same one form a group; a group and a span that may follow
it form a cube, whose rows are the group's hypotheses and whose columns are the options of the
span, both best first. A heap over all cubes that lead into a stack hands out new hypotheses until
the pop limit is reached. Reordering limits and orientations follow `moses/SearchCubePruning.cpp`
and `moses/FF/LexicalReordering/LRModel.cpp`.

Coverage is the position of the first gap and a bit mask of the words from there on: with a
distortion limit all covered words lie close behind the first gap.
"""

from __future__ import annotations

import numpy as np

from mert.decoders.embedded.contexts import hash_of_end, same_end
from mert.decoders.embedded.heap import grown, heapify, pop, push, sink
from mert.decoders.embedded.joint_models import score_beside, score_words
from mert.decoders.embedded.lookups import END_OF_SENTENCE, flush, score_word
from mert.decoders.embedded.records import (
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
from moses_feature.arrays import Floats, Integers, Record, Records
from moses_feature.compiled import compiled, inner
from moses_feature.hash_table import first_place, mixed, next_place, size_for


@compiled
def search(task: Task, options: Options, hypotheses: Hypotheses, lookups: Lookups) -> Graph:
    """Search for the best translations of a sentence of one word or more.

    Args:
        task: what is searched for.
        options: the phrase options under the weights.
        hypotheses: room for `most_hypotheses`, in which the graph stands.
        lookups: of the language models.
    """
    size = len(task.phrases)
    limits = task.limits
    problem = Problem(task, options, lookups)
    estimates = Estimates(
        future_scores(task.phrases, options), _future_of_the_rest(task.phrases, options)
    )
    # The empty hypothesis, alone in its stack and in its group.
    _make_empty(hypotheses, options, task.roots)
    groups = _no_groups(1 + size * min(limits.stack, limits.pops), size)
    table = np.empty(size_for(limits.pops), np.int64)
    best = np.zeros(1, np.int64)
    _group(best, 0, table, hypotheses, groups)
    made = 1
    cubes = np.empty(1024, CUBE)
    for stack in range(1, size + 1):
        cubes, count = _cubes_into(stack, problem, estimates, hypotheses, groups, cubes)
        # What is guessed of neural models is asked when the stack is full, which is then filled
        # again, until nothing in it was guessed.
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
            break  # to be done again with more room
        # What recombines is together in the table; the best go on.
        best = _best_first(table, hypotheses.records)
        _group(best[: limits.stack], stack, table, hypotheses, groups)
    return Graph(hypotheses.records[:made], best)


def most_hypotheses(words: int, limits: Limits) -> int:
    """Return how many hypotheses a search makes at most for a sentence of so many words."""
    return 1 + words * limits.pops


def room_for(count: int, models: int) -> Hypotheses:
    """Return room for so many hypotheses under so many language models."""
    return Hypotheses(np.empty(count, HYPOTHESIS), np.empty((count, models), dtype=np.int64))


@compiled
def _make_empty(hypotheses: Hypotheses, options: Options, roots: Integers) -> None:
    """Make the first hypothesis, which is empty."""
    hypotheses.states[0, : options.trees] = options.begin_states
    hypotheses.states[0, options.trees :] = roots
    first = hypotheses.records[0]
    first.score = first.total = 0.0
    first.previous = first.option = first.start = first.end = first.next_worse = -1
    first.gap = first.mask = first.written = 0


@compiled
def _no_groups(room: int, size: int) -> Groups:
    """Return groups with room for so many hypotheses of a sentence of so many words."""
    return Groups(
        np.zeros(room, np.int64), np.zeros(room + 1, np.int64), np.zeros(size + 2, np.int64)
    )


@inner
def orientation(previous_start: int, previous_end: int, start: int, end: int) -> int:
    """Return how a span follows the one before (`LRModel::GetOrientation`)."""
    if start == previous_end + 1:
        return MONOTONE
    if previous_end < 0:  # the first phrase, not at the beginning
        return DISCONTINUOUS_RIGHT
    if end + 1 == previous_start:
        return SWAP
    return DISCONTINUOUS_RIGHT if start > previous_end else DISCONTINUOUS_LEFT


@compiled
def future_scores(phrases: Integers, options: Options) -> Floats:
    """Estimate what the words of a sentence add at best, whatever phrases translate them.

    Args:
        phrases: (n, longest) source phrases, as in `Task`.
        options: of them.

    Returns:
        (n + 1, WINDOW + 1): the estimate for 0, 1, … words from a word on.
    """
    size, width = phrases.shape
    future = np.full((size + 1, WINDOW + 1), -np.inf)
    future[:, 0] = 0.0
    for start in range(size - 1, -1, -1):
        for count in range(1, min(WINDOW, size - start) + 1):
            for length in range(1, min(width, count) + 1):
                phrase = phrases[start, length - 1]
                if phrase >= 0 and options.size[phrase] > 0:
                    best = options.estimate[options.order[options.first[phrase]]]
                    joined = best + future[start + length, count - length]
                    future[start, count] = max(future[start, count], joined)
    return future


@compiled
def _future_of_the_rest(phrases: Integers, options: Options) -> Floats:
    """Return (n + 1,): the estimate for all words from a word on."""
    size, width = phrases.shape
    rest = np.full(size + 1, -np.inf)
    rest[size] = 0.0
    for start in range(size - 1, -1, -1):
        for length in range(1, min(width, size - start) + 1):
            phrase = phrases[start, length - 1]
            if phrase >= 0 and options.size[phrase] > 0:
                best = options.estimate[options.order[options.first[phrase]]]
                rest[start] = max(rest[start], best + rest[start + length])
    return rest


@inner
def _uncovered_score(estimates: Estimates, gap: int, mask: int) -> float:
    """Return the estimate for all words that are not covered."""
    total = 0.0
    place = gap
    while mask != 0:
        begin = place
        while mask & 1 == 0:
            mask >>= 1
            place += 1
        total += estimates.future[begin, place - begin]
        while mask & 1 == 1:
            mask >>= 1
            place += 1
    return total + estimates.rest[place]


@inner
def _words_to_skip(gap: int, mask: int, after: int, size: int) -> int:
    """Return the words that jumps skip when what is not covered is translated in order.

    A hypothesis that has jumped ahead will pay for the way back (Moore and Quirk 2007).

    Args:
        gap: the first word that is not covered.
        mask: bits of the covered words from there on.
        after: the word behind the last span.
        size: words of the sentence.
    """
    skipped = abs(after - gap)
    place = gap
    while mask != 0:
        while mask & 1 == 0:
            mask >>= 1
            place += 1
        begin = place
        while mask & 1 == 1:
            mask >>= 1
            place += 1
        if place < size:  # nothing is behind the last words
            skipped += place - begin
    return skipped


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
        if state == options.empty_states[model, place]:  # the context is forgotten
            total += options.left[model, place]
            state = options.empty_states[model, last - 1]
            break
    if complete and last > first:  # Moses scores no </s> after a phrase without words
        score, _ = score_word(lookups, state, END_OF_SENTENCE)
        total += score
    return total, state


@inner
def _may_follow(problem: Problem, position: int, target: int, complete: bool) -> bool:
    """Return whether a target phrase is what the reference goes on with, or ends with."""
    options, reference = problem.options, problem.task.reference
    first, last = options.word_offsets[target], options.word_offsets[target + 1]
    end = position + last - first
    if end > len(reference) or (complete and end < len(reference)):
        return False
    for place in range(first, last):
        if reference[position + place - first] != options.words[place]:
            return False
    return True


@compiled
def _cubes_into(
    stack: int,
    problem: Problem,
    estimates: Estimates,
    hypotheses: Hypotheses,
    groups: Groups,
    cubes: Records,
) -> tuple[Records, int]:
    """Find the cubes that lead into a stack; return an array of them, and their number.

    The array is the one that is given, or a larger one.
    """
    task, options = problem.task, problem.options
    size, width = task.phrases.shape
    limit = task.limits.distortion
    count = 0
    for length in range(1, min(width, stack) + 1):
        first, last = groups.of_stack[stack - length], groups.of_stack[stack - length + 1]
        for group in range(first, last):
            head = hypotheses.records[groups.members[groups.first[group]]]
            gap, mask = head.gap, head.mask
            for start in range(gap, min(gap + WINDOW - length, size - length) + 1):
                if start > gap and start + length - gap > limit:
                    break  # from there the first gap would be out of reach
                span = ((1 << length) - 1) << (start - gap)
                phrase = task.phrases[start, length - 1]
                if (
                    abs(head.end + 1 - start) > limit
                    or mask & span != 0
                    or phrase < 0
                    or options.size[phrase] == 0
                ):
                    continue
                if count == len(cubes):
                    cubes = grown(cubes, 2 * count)
                cube = cubes[count]
                cube.group = group
                cube.start = start
                cube.length = length
                cube.phrase = phrase
                new_gap, new_mask = gap, mask | span
                while new_mask & 1 == 1:
                    new_mask >>= 1
                    new_gap += 1
                cube.gap = new_gap
                cube.mask = new_mask
                to_skip = _words_to_skip(new_gap, new_mask, start + length, size)
                of_words = _uncovered_score(estimates, new_gap, new_mask)
                cube.future = of_words - options.distortion_weight * to_skip
                count += 1
    return cubes, count


@compiled
def _fill_stack(
    made: int,
    complete: bool,
    problem: Problem,
    hypotheses: Hypotheses,
    groups: Groups,
    cubes: Records,
    table: Integers,
) -> int:
    """Take hypotheses from the cubes and recombine them; return how many there are then.

    Args:
        made: hypotheses that there are already.
        complete: whether it is the last stack.
        problem: what is searched for.
        hypotheses: all of them; new ones are written behind those that are made.
        groups: of the stacks before.
        cubes: that lead into this one.
        table: an empty hash table for the new hypotheses.
    """
    task, options = problem.task, problem.options
    frontier = _frontier_of(cubes, 2 * task.limits.pops + 2, hypotheses.states.shape[1])
    items, priority, heap = frontier.items, frontier.priority, frontier.heap
    # The corners are estimated first, and scored with the language models when their turn comes.
    _estimate_corners(frontier, options, hypotheses, groups)
    heapify(heap, priority, len(cubes))
    in_heap = used = len(cubes)
    taken = 0
    while in_heap > 0 and taken < task.limits.pops:
        number = heap[0]
        item = items[number]
        cube = cubes[item.cube]
        if item.scored == 0:
            priority[number] = _score(number, problem, hypotheses, groups, frontier, complete)
            sink(heap, priority, in_heap, 0)
            continue
        taken += 1
        # A place has one way to be reached: along its row, or down the first column.
        rows = groups.first[cube.group + 1] - groups.first[cube.group]
        right = item.column + 1 < options.size[cube.phrase]
        below = item.column == 0 and item.row + 1 < rows
        for down in range(0 if right else 1, 2 if below else 1):
            items[used].cube = item.cube
            items[used].row = item.row + down
            items[used].column = item.column + 1 - down
            priority[used] = _score(used, problem, hypotheses, groups, frontier, complete)
            if down == 0 or not right:  # it is nearly as good, and takes the place at the top
                heap[0] = used
                sink(heap, priority, in_heap, 0)
            else:
                push(heap, priority, in_heap, used)
                in_heap += 1
            used += 1
        if not right and not below:
            pop(heap, priority, in_heap)
            in_heap -= 1
        if item.score > -np.inf:  # else it is not what the reference goes on with
            _add_hypothesis(made, number, problem, hypotheses, groups, frontier)
            _recombine(made, table, hypotheses, problem)
            made += 1
    return made


@compiled
def _frontier_of(cubes: Records, more: int, models: int) -> Frontier:
    """Return room for the corners of cubes and so many other places."""
    room = len(cubes) + more
    return Frontier(
        cubes,
        np.zeros(room, ITEM),
        np.empty((room, models), np.int64),
        np.empty(room),
        np.arange(room),
    )


@inner
def _estimate_corners(
    frontier: Frontier, options: Options, hypotheses: Hypotheses, groups: Groups
) -> None:
    """Make an item of the corner of each cube, with an estimate as its priority."""
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
    """Return the score of a hypothesis and an option, but for the language models."""
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
    """Score an item with everything, and return its priority."""
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


@inner
def _same_cubes(one: Record, other: Record) -> bool:
    """Return whether two hypotheses have the same coverage and end at the same word."""
    return bool(one.gap == other.gap and one.mask == other.mask and one.end == other.end)


@inner
def _cube_hash(hypothesis: Record) -> int:
    """Return a hash of what `_same_cubes` compares."""
    return mixed(mixed(mixed(0, hypothesis.gap), hypothesis.mask), hypothesis.end)


@inner
def _same_future(one: Record, other: Record, options: Options) -> bool:
    """Return whether no phrase that follows can tell two hypotheses apart."""
    same = _same_cubes(one, other) and one.written == other.written
    if options.orientation:
        same = same and one.start == other.start
        class_of_other = options.forward_class[other.option]
        same = same and options.forward_class[one.option] == class_of_other
    return same


@inner
def _recombine(new: int, table: Integers, hypotheses: Hypotheses, problem: Problem) -> None:
    """Put a hypothesis into a hash table, and together with others of the same future.

    The table holds the best of those that recombine, -1 where there is none. Models of trees see
    all words: that those before the last ones make no difference is an approximation.
    """
    records, states, options = hypotheses.records, hypotheses.states, problem.options
    contexts = problem.lookups.contexts
    made = records[new]
    hashed = mixed(_cube_hash(made), made.written)
    for model in range(options.trees):
        hashed = mixed(hashed, states[new, model])
    for model in range(options.trees, states.shape[1]):
        words = options.history[model - options.trees]
        hashed = mixed(hashed, hash_of_end(contexts, states[new, model] >> 1, words))
    slot = first_place(hashed, len(table))
    while table[slot] >= 0:
        best = table[slot]
        same = _same_future(records[best], made, options)
        for model in range(options.trees):
            same = same and states[best, model] == states[new, model]
        for model in range(options.trees, states.shape[1]):
            one, other = states[best, model] >> 1, states[new, model] >> 1
            words = options.history[model - options.trees]
            same = same and same_end(contexts, one, other, words)
        if same:
            break
        slot = next_place(slot, len(table))
    best = table[slot]
    if best < 0:
        table[slot] = new
    elif made.score > records[best].score:
        made.next_worse = best
        table[slot] = new
    else:
        made.next_worse = records[best].next_worse
        records[best].next_worse = new


@compiled
def _best_first(table: Integers, hypotheses: Records) -> Integers:
    """Return the hypotheses in a hash table; of equal ones the one made earlier comes first."""
    found = np.sort(table[table >= 0])
    best: Integers = found[np.argsort(-hypotheses["total"][found], kind="mergesort")]
    return best


@compiled
def _group(
    kept: Integers, stack: int, table: Integers, hypotheses: Hypotheses, groups: Groups
) -> None:
    """Add the groups of a stack, of hypotheses that are given best first.

    The table, of the hypotheses before, is free to be used.
    """
    # Which group each belongs to; the table holds the first member of each.
    table[:] = -1
    group_of = np.empty(len(kept), np.int64)
    sizes = np.zeros(len(kept), np.int64)
    count = 0
    for index in range(len(kept)):
        hypothesis = hypotheses.records[kept[index]]
        slot = first_place(_cube_hash(hypothesis), len(table))
        while table[slot] >= 0:
            if _same_cubes(hypotheses.records[kept[table[slot]]], hypothesis):
                break
            slot = next_place(slot, len(table))
        if table[slot] < 0:
            table[slot] = index
            group_of[index] = count
            count += 1
        else:
            group_of[index] = group_of[table[slot]]
        sizes[group_of[index]] += 1
    # Their members, group after group, in the order that they had.
    known = groups.of_stack[stack]
    for group in range(count):
        groups.first[known + group + 1] = groups.first[known + group] + sizes[group]
    sizes[:] = 0
    for index in range(len(kept)):
        group = group_of[index]
        groups.members[groups.first[known + group] + sizes[group]] = kept[index]
        sizes[group] += 1
    groups.of_stack[stack + 1] = known + count
