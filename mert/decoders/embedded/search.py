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

from mert.decoders.embedded.compiled import compiled, inner
from mert.decoders.embedded.heap import grown, heapify, pop, push
from mert.decoders.embedded.language_model import END_OF_SENTENCE, flush, score_word
from mert.decoders.embedded.records import (
    CUBE,
    DISCONTINUOUS_LEFT,
    DISCONTINUOUS_RIGHT,
    HASH_FACTOR,
    HYPOTHESIS,
    ITEM,
    MONOTONE,
    SWAP,
    WINDOW,
    Graph,
    Groups,
)


@inner
def orientation(previous_start, previous_end, start, end):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return how a span follows the one before (`LRModel::GetOrientation`)."""
    if start == previous_end + 1:
        return MONOTONE
    if previous_end < 0:  # the first phrase, not at the beginning
        return DISCONTINUOUS_RIGHT
    if end + 1 == previous_start:
        return SWAP
    return DISCONTINUOUS_RIGHT if start > previous_end else DISCONTINUOUS_LEFT


@compiled
def future_scores(phrases, options):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Estimate what the words of a sentence add at best, whatever phrases translate them.

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
def _future_of_the_rest(phrases, options):  # type: ignore[no-untyped-def]  # pragma: no cover
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
def _uncovered_score(future, rest, gap, mask):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the estimate for all words that are not covered."""
    total = 0.0
    place = gap
    while mask != 0:
        begin = place
        while mask & 1 == 0:
            mask >>= 1
            place += 1
        total += future[begin, place - begin]
        while mask & 1 == 1:
            mask >>= 1
            place += 1
    return total + rest[place]


@inner
def _language_model_score(lookups, options, model, target, state, complete):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the score of a target phrase after a state, and the state after it."""
    total = 0.0
    first, last = options.word_offsets[target], options.word_offsets[target + 1]
    place = first - 1
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
    lookups.asked[model] += place + 1 - first
    return total, state


@inner
def _may_follow(task, position, options, target, complete):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Tell whether a target phrase is what the reference goes on with, or ends with."""
    first, last = options.word_offsets[target], options.word_offsets[target + 1]
    end = position + last - first
    if end > len(task.reference) or (complete and end < len(task.reference)):
        return False
    for place in range(first, last):
        if task.reference[position + place - first] != options.words[place]:
            return False
    return True


@compiled
def _cubes_into(stack, task, options, future, rest, hypotheses, groups, cubes):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Find the cubes that lead into a stack; return them and their number."""
    size, width = task.phrases.shape
    limit = task.limits.distortion
    count = 0
    for length in range(1, min(width, stack) + 1):
        first, last = groups.of_stack[stack - length], groups.of_stack[stack - length + 1]
        for group in range(first, last):
            head = hypotheses[groups.members[groups.first[group]]]
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
                cube.future = _uncovered_score(future, rest, new_gap, new_mask)
                count += 1
    return cubes, count


@inner
def _score_without_models(hypothesis, cube, option, hypotheses, options):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the score of a hypothesis and an option, but for the language models."""
    before = hypotheses[hypothesis]
    end = cube.start + cube.length - 1
    how = orientation(before.start, before.end, cube.start, end)
    score = before.score + options.fixed[option] + options.backward[option, how]
    score -= options.distortion_weight * abs(before.end + 1 - cube.start)
    if hypothesis > 0:
        score += options.forward[before.option, how]
    return score


@inner
def _estimate_corners(cubes, count, options, hypotheses, groups, items, priority):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Make an item of the corner of each cube, with an estimate as its priority."""
    for number in range(count):
        cube, item = cubes[number], items[number]
        item.cube = number
        hypothesis = groups.members[groups.first[cube.group]]
        option = options.order[options.first[cube.phrase]]
        score = _score_without_models(hypothesis, cube, option, hypotheses, options)
        of_models = options.estimate[option] - options.fixed[option]
        priority[number] = score + of_models + cube.future


@inner
def _score(  # type: ignore[no-untyped-def]  # pragma: no cover
    number, task, options, lookups, hypotheses, states, groups, cubes, items, item_states, complete
):
    """Score an item with everything, and return its priority."""
    item = items[number]
    cube = cubes[item.cube]
    hypothesis = groups.members[groups.first[cube.group] + item.row]
    option = options.order[options.first[cube.phrase] + item.column]
    score = _score_without_models(hypothesis, cube, option, hypotheses, options)
    target = options.target[option]
    item.scored = 1
    if task.forced and not _may_follow(
        task, hypotheses[hypothesis].written, options, target, complete
    ):  # it stays in its cube, so that its neighbours are reached
        item.score = -np.inf
        return score + options.estimate[option] - options.fixed[option] + cube.future
    for model in range(len(options.lm_weights)):
        of_model, state = _language_model_score(
            lookups, options, model, target, states[hypothesis, model], complete
        )
        score += options.lm_weights[model] * of_model
        item_states[number, model] = state
    item.score = score
    return score + cube.future


@inner
def _add_hypothesis(new, item, cube, priority, task, options, hypotheses, groups):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Make a hypothesis of an item."""
    hypothesis = groups.members[groups.first[cube.group] + item.row]
    option = options.order[options.first[cube.phrase] + item.column]
    made = hypotheses[new]
    made.score = item.score
    made.total = priority
    made.previous = hypothesis
    made.option = option
    made.start = cube.start
    made.end = cube.start + cube.length - 1
    made.gap = cube.gap
    made.mask = cube.mask
    made.written = 0
    made.next_worse = -1
    if task.forced:
        target = options.target[option]
        length = options.word_offsets[target + 1] - options.word_offsets[target]
        made.written = hypotheses[hypothesis].written + length


@inner
def _same_cubes(one, other):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Tell whether two hypotheses have the same coverage and end at the same word."""
    return one.gap == other.gap and one.mask == other.mask and one.end == other.end


@inner
def _cube_hash(hypothesis):  # type: ignore[no-untyped-def]  # pragma: no cover
    return ((hypothesis.gap * 31 + hypothesis.mask) * 31 + hypothesis.end) * HASH_FACTOR


@inner
def _same_future(one, other, options):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Tell whether no phrase that follows can tell two hypotheses apart."""
    same = _same_cubes(one, other) and one.written == other.written
    if options.orientation:
        same = same and one.start == other.start
        class_of_other = options.forward_class[other.option]
        same = same and options.forward_class[one.option] == class_of_other
    return same


@inner
def _recombine(new, table, hypotheses, states, options):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Put a hypothesis into a hash table, and together with others of the same future."""
    made = hypotheses[new]
    mixed = _cube_hash(made) + made.written
    for model in range(states.shape[1]):
        mixed = (mixed ^ states[new, model]) * HASH_FACTOR
    slot = (mixed ^ (mixed >> 32)) & (len(table) - 1)
    while table[slot] >= 0:
        best = table[slot]
        same = _same_future(hypotheses[best], made, options)
        for model in range(states.shape[1]):
            same = same and states[best, model] == states[new, model]
        if same:
            break
        slot = (slot + 1) & (len(table) - 1)
    best = table[slot]
    if best < 0:
        table[slot] = new
    elif made.score > hypotheses[best].score:
        made.next_worse = best
        table[slot] = new
    else:
        made.next_worse = hypotheses[best].next_worse
        hypotheses[best].next_worse = new


@compiled
def _best_first(table, hypotheses):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the hypotheses in a hash table; of equal ones the one made earlier comes first."""
    found = np.sort(table[table >= 0])
    return found[np.argsort(-hypotheses["total"][found], kind="mergesort")]


@compiled
def _group(kept, stack, table, hypotheses, groups):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Add groups of hypotheses, given best first; the table is free to be used."""
    table[:] = -1
    group_of = np.empty(len(kept), np.int64)
    sizes = np.zeros(len(kept), np.int64)
    count = 0
    for index in range(len(kept)):
        hypothesis = hypotheses[kept[index]]
        mixed = _cube_hash(hypothesis)
        slot = (mixed ^ (mixed >> 32)) & (len(table) - 1)
        while table[slot] >= 0 and not _same_cubes(hypotheses[kept[table[slot]]], hypothesis):
            slot = (slot + 1) & (len(table) - 1)
        if table[slot] < 0:
            table[slot] = index
            group_of[index] = count
            count += 1
        else:
            group_of[index] = group_of[table[slot]]
        sizes[group_of[index]] += 1
    known = groups.of_stack[stack]
    for group in range(count):
        groups.first[known + group + 1] = groups.first[known + group] + sizes[group]
    sizes[:] = 0
    for index in range(len(kept)):
        group = group_of[index]
        groups.members[groups.first[known + group] + sizes[group]] = kept[index]
        sizes[group] += 1
    groups.of_stack[stack + 1] = known + count


@compiled
def _fill_stack(  # type: ignore[no-untyped-def]  # pragma: no cover
    made, complete, task, options, lookups, hypotheses, states, groups, cubes, count, table
):
    """Take hypotheses from the cubes and recombine them; return how many there are then."""
    room = count + 2 * task.limits.pops + 2
    items = np.zeros(room, ITEM)
    item_states = np.empty((room, states.shape[1]), np.int64)
    priority = np.empty(room)
    heap = np.arange(room)
    _estimate_corners(cubes, count, options, hypotheses, groups, items, priority)
    heapify(heap, priority, count)
    in_heap = used = count
    taken = 0
    while in_heap > 0 and taken < task.limits.pops:
        number = pop(heap, priority, in_heap)
        in_heap -= 1
        item = items[number]
        cube = cubes[item.cube]
        if item.scored == 0:
            priority[number] = _score(
                number, task, options, lookups, hypotheses, states, groups, cubes, items,
                item_states, complete,
            )  # fmt: skip
            push(heap, priority, in_heap, number)
            in_heap += 1
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
            priority[used] = _score(
                used, task, options, lookups, hypotheses, states, groups, cubes, items,
                item_states, complete,
            )  # fmt: skip
            push(heap, priority, in_heap, used)
            in_heap += 1
            used += 1
        if item.score > -np.inf:
            _add_hypothesis(made, item, cube, priority[number], task, options, hypotheses, groups)
            states[made] = item_states[number]
            _recombine(made, table, hypotheses, states, options)
            made += 1
    return made


@compiled
def search(task, options, lookups):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Search for the best translations of a sentence of one word or more.

    Args:
        task: what is searched for.
        options: the phrase options under the weights.
        lookups: of the language models.
    """
    size = len(task.phrases)
    limits = task.limits
    future = future_scores(task.phrases, options)
    rest = _future_of_the_rest(task.phrases, options)
    room = 1 + size * limits.pops
    hypotheses = np.empty(room, HYPOTHESIS)
    states = np.empty((room, len(options.lm_weights)), np.int64)
    states[0] = options.begin_states
    first = hypotheses[0]
    first.score = first.total = 0.0
    first.previous = first.option = first.start = first.end = first.next_worse = -1
    first.gap = first.mask = first.written = 0
    made = 1
    expanded = 1 + size * min(limits.stack, limits.pops)
    groups = Groups(
        np.zeros(expanded, np.int64),
        np.zeros(expanded + 1, np.int64),
        np.zeros(size + 2, np.int64),
    )
    slots = 16
    while slots < 2 * limits.pops:
        slots *= 2
    table = np.empty(slots, np.int64)
    best = np.zeros(1, np.int64)
    _group(best, 0, table, hypotheses, groups)
    cubes = np.empty(1024, CUBE)
    for stack in range(1, size + 1):
        cubes, count = _cubes_into(stack, task, options, future, rest, hypotheses, groups, cubes)
        guessed = True
        while guessed:
            table[:] = -1
            lookups.guessed[0] = 0
            made_so_far = _fill_stack(
                made, stack == size, task, options, lookups, hypotheses, states, groups, cubes,
                count, table,
            )  # fmt: skip
            guessed = lookups.guessed[0] > 0 and lookups.crowded[0] == 0 and flush(lookups)
        made = made_so_far
        if lookups.crowded[0]:
            break  # to be done again
        best = _best_first(table, hypotheses)
        _group(best[: limits.stack], stack, table, hypotheses, groups)
    return Graph(hypotheses[:made].copy(), best)
