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

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mert.decoders.language_model import END_OF_SENTENCE, Lookups, score_word

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

WINDOW = 60
"""Source words behind the first gap that may be covered."""
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


class Graph(NamedTuple):
    """All hypotheses of a search, and how they recombined.

    Attributes:
        score: (h,) natural log-linear scores of the partial translations.
        previous: (h,) the hypothesis before, -1 for the first.
        option: (h,) the last option, -1 for the first.
        start, end: (h,) first and last source word of the last span, -1 for the first.
        next_worse: (h,) of the hypotheses that recombined with this one, the next; -1 at the end.
            The best of them comes first, the others in no order.
        complete: numbers of the complete hypotheses that are best of their kind, best first.
    """

    score: Floats
    previous: Integers
    option: Integers
    start: Integers
    end: Integers
    next_worse: Integers
    complete: Integers


@njit(cache=True)
def orientation(previous_start, previous_end, start, end):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return how a span follows the one before (`LRModel::GetOrientation`)."""
    if start == previous_end + 1:
        return MONOTONE
    if previous_end < 0:  # the first phrase, not at the beginning
        return DISCONTINUOUS_RIGHT
    if end + 1 == previous_start:
        return SWAP
    return DISCONTINUOUS_RIGHT if start > previous_end else DISCONTINUOUS_LEFT


@njit(cache=True)
def _future_scores(phrases, options):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return (n + 1, n + 1): the best estimate for the words from i up to j, not included."""
    size, width = phrases.shape
    future = np.full((size + 1, size + 1), -np.inf)
    for start in range(size):
        for length in range(1, min(width, size - start) + 1):
            phrase = phrases[start, length - 1]
            if phrase >= 0 and options.size[phrase] > 0:
                best = options.order[options.first[phrase]]
                future[start, start + length] = options.estimate[best]
    for length in range(2, size + 1):
        for start in range(size - length + 1):
            end = start + length
            for middle in range(start + 1, end):
                joined = future[start, middle] + future[middle, end]
                if joined > future[start, end]:
                    future[start, end] = joined
    return future


@njit(cache=True)
def _uncovered_score(future, gap, mask):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the estimate for all words that are not covered."""
    total = 0.0
    place = gap
    while mask != 0:
        begin = place
        while mask & 1 == 0:
            mask >>= 1
            place += 1
        total += future[begin, place]
        while mask & 1 == 1:
            mask >>= 1
            place += 1
    size = len(future) - 1
    return total + future[place, size] if place < size else total


@njit(cache=True)
def _push(heap, priority, used, item):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Put an item into a binary heap of `used` items, highest priority first."""
    place = used
    while place > 0:
        parent = (place - 1) >> 1
        if priority[heap[parent]] >= priority[item]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


@njit(cache=True)
def _sink(heap, priority, used, place):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Move the item at a place down to where it belongs."""
    item = heap[place]
    while True:
        child = 2 * place + 1
        if child >= used:
            break
        if child + 1 < used and priority[heap[child + 1]] > priority[heap[child]]:
            child += 1
        if priority[heap[child]] <= priority[item]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item


@njit(cache=True)
def _grown(array, size):  # type: ignore[no-untyped-def]  # pragma: no cover
    grown = np.empty(size, array.dtype)
    grown[: len(array)] = array
    return grown


@njit(cache=True)
def _language_model_score(lookups, options, model, target, state, complete):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the score of a target phrase after a state, and the state after it."""
    total = 0.0
    last = options.word_offsets[target + 1]
    for place in range(options.word_offsets[target], last):
        score, state = score_word(lookups, state, options.words[place])
        total += score
        if state == options.empty_states[model, place]:  # the context is forgotten
            total += options.left[model, place]
            state = options.empty_states[model, last - 1]
            break
    if complete:
        score, _ = score_word(lookups, state, END_OF_SENTENCE)
        total += score
    return total, state


@njit(cache=True)
def _may_follow(reference, position, options, option):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Tell whether an option's words are those of the reference from a position on."""
    target = options.target[option]
    first, last = options.word_offsets[target], options.word_offsets[target + 1]
    if position + last - first > len(reference):
        return False
    for place in range(first, last):
        if reference[position + place - first] != options.words[place]:
            return False
    return True


@njit(cache=True)
def search(phrases, options, lookups, limits, reference, forced):  # type: ignore[no-untyped-def]  # pragma: no cover  # noqa: C901, PLR0912, PLR0915
    """Search for the best translations of a sentence.

    Args:
        phrases: (n, longest) source phrase that begins at a word and has 1, 2, … words; -1 where
            there is none.
        options: the phrase options under the weights.
        lookups: of the language models.
        limits: how far to go.
        reference: words of the only translation that is wanted, if `forced`.
        forced: whether to find nothing but the reference.
    """
    size, width = phrases.shape
    models = len(options.lm_weights)
    future = _future_scores(phrases, options)

    # Hypotheses.
    room = 1 + size * limits.pops
    score = np.empty(room)
    total = np.empty(room)  # with the estimate for the uncovered words
    previous = np.empty(room, np.int64)
    option_of = np.empty(room, np.int64)
    start_of = np.empty(room, np.int64)
    end_of = np.empty(room, np.int64)
    gap_of = np.empty(room, np.int64)
    mask_of = np.empty(room, np.int64)
    written = np.empty(room, np.int64)  # target words; counted if forced, else 0
    states = np.empty((room, models), np.int64)
    next_worse = np.empty(room, np.int64)
    score[0] = 0.0
    total[0] = 0.0
    previous[0] = option_of[0] = start_of[0] = end_of[0] = next_worse[0] = -1
    gap_of[0] = mask_of[0] = written[0] = 0
    states[0] = options.begin_states
    hypotheses = 1

    # Groups of hypotheses that were kept, stack after stack.
    members = np.empty(1 + size * min(limits.stack, limits.pops), np.int64)
    group_first = np.empty(len(members) + 1, np.int64)
    stack_groups = np.zeros(size + 2, np.int64)
    members[0] = 0
    group_first[0] = 0
    group_first[1] = 1
    stack_groups[1] = groups = 1

    # Cubes that lead into one stack, and the heap over them.
    cube_group = np.empty(1024, np.int64)
    cube_start = np.empty(1024, np.int64)
    cube_length = np.empty(1024, np.int64)
    cube_phrase = np.empty(1024, np.int64)
    cube_gap = np.empty(1024, np.int64)
    cube_mask = np.empty(1024, np.int64)
    cube_future = np.empty(1024)

    slots = 16
    while slots < 2 * limits.pops:
        slots *= 2
    table = np.empty(slots, np.int64)
    complete_hypotheses = np.empty(0, np.int64)

    for stack in range(1, size + 1):
        complete = stack == size
        cubes = 0
        for length in range(1, min(width, stack) + 1):
            for group in range(stack_groups[stack - length], stack_groups[stack - length + 1]):
                head = members[group_first[group]]
                gap, mask, end = gap_of[head], mask_of[head], end_of[head]
                bits = (1 << length) - 1
                for start in range(gap, min(gap + WINDOW - length, size - length) + 1):
                    jump = abs(end + 1 - start)
                    back = abs(start + length - gap)
                    if start > gap and back > limits.distortion:
                        break
                    if jump > limits.distortion:
                        continue
                    shifted = bits << (start - gap)
                    if mask & shifted != 0:
                        continue
                    phrase = phrases[start, length - 1]
                    if phrase < 0 or options.size[phrase] == 0:
                        continue
                    if cubes == len(cube_group):
                        more = 2 * cubes
                        cube_group = _grown(cube_group, more)
                        cube_start = _grown(cube_start, more)
                        cube_length = _grown(cube_length, more)
                        cube_phrase = _grown(cube_phrase, more)
                        cube_gap = _grown(cube_gap, more)
                        cube_mask = _grown(cube_mask, more)
                        cube_future = _grown(cube_future, more)
                    new_gap, new_mask = gap, mask | shifted
                    while new_mask & 1 == 1:
                        new_mask >>= 1
                        new_gap += 1
                    cube_group[cubes] = group
                    cube_start[cubes] = start
                    cube_length[cubes] = length
                    cube_phrase[cubes] = phrase
                    cube_gap[cubes] = new_gap
                    cube_mask[cubes] = new_mask
                    cube_future[cubes] = _uncovered_score(future, new_gap, new_mask)
                    cubes += 1

        # Items: places in cubes. The corners are estimated; their neighbours, and corners that
        # come to the top, are scored.
        items = cubes
        room = cubes + 2 * limits.pops + 2
        item_cube = np.empty(room, np.int64)
        item_row = np.zeros(room, np.int64)
        item_column = np.zeros(room, np.int64)
        item_scored = np.zeros(room, np.bool_)
        item_score = np.empty(room)
        item_states = np.empty((room, models), np.int64)
        priority = np.empty(room)
        heap = np.empty(room, np.int64)
        in_heap = cubes
        for cube in range(cubes):
            item_cube[cube] = cube
            heap[cube] = cube
            hypothesis = members[group_first[cube_group[cube]]]
            start, end = cube_start[cube], cube_start[cube] + cube_length[cube] - 1
            option = options.order[options.first[cube_phrase[cube]]]
            how = orientation(start_of[hypothesis], end_of[hypothesis], start, end)
            estimate = score[hypothesis] + options.estimate[option] + cube_future[cube]
            estimate -= options.distortion_weight * abs(end_of[hypothesis] + 1 - start)
            estimate += options.backward[option, how]
            if hypothesis > 0:
                estimate += options.forward[option_of[hypothesis], how]
            priority[cube] = estimate
        for place in range(in_heap // 2 - 1, -1, -1):
            _sink(heap, priority, in_heap, place)

        table[:] = -1
        first_new = hypotheses
        pops = 0
        while in_heap > 0 and pops < limits.pops:
            item = heap[0]
            in_heap -= 1
            heap[0] = heap[in_heap]
            _sink(heap, priority, in_heap, 0)
            cube = item_cube[item]
            group = cube_group[cube]
            start, end = cube_start[cube], cube_start[cube] + cube_length[cube] - 1
            options_first = options.first[cube_phrase[cube]]
            options_count = options.size[cube_phrase[cube]]
            fresh = 0
            if not item_scored[item]:
                fresh = 1
                new_items = (item, item)
            else:
                # A place has one way to be reached: along its row, or down the first column.
                row, column = item_row[item], item_column[item]
                right, below = -1, -1
                if column + 1 < options_count:
                    right = items
                    item_cube[items] = cube
                    item_row[items] = row
                    item_column[items] = column + 1
                    items += 1
                if column == 0 and row + 1 < group_first[group + 1] - group_first[group]:
                    below = items
                    item_cube[items] = cube
                    item_row[items] = row + 1
                    item_column[items] = 0
                    items += 1
                new_items = (right, below)
            for which in range(2 - fresh):
                new = new_items[which]
                if new < 0:
                    continue
                hypothesis = members[group_first[group] + item_row[new]]
                option = options.order[options_first + item_column[new]]
                possible = True
                if forced:
                    possible = _may_follow(reference, written[hypothesis], options, option)
                    if possible and complete:
                        target = options.target[option]
                        length = options.word_offsets[target + 1] - options.word_offsets[target]
                        possible = written[hypothesis] + length == len(reference)
                how = orientation(start_of[hypothesis], end_of[hypothesis], start, end)
                value = score[hypothesis] + options.fixed[option]
                value -= options.distortion_weight * abs(end_of[hypothesis] + 1 - start)
                value += options.backward[option, how]
                if hypothesis > 0:
                    value += options.forward[option_of[hypothesis], how]
                if possible:
                    for model in range(models):
                        of_model, state = _language_model_score(
                            lookups, options, model, options.target[option],
                            states[hypothesis, model], complete,
                        )  # fmt: skip
                        value += options.lm_weights[model] * of_model
                        item_states[new, model] = state
                    item_score[new] = value
                else:  # it stays in its cube, so that its neighbours are reached
                    item_score[new] = -np.inf
                    value += options.estimate[option] - options.fixed[option]
                item_scored[new] = True
                priority[new] = value + cube_future[cube]
                _push(heap, priority, in_heap, new)
                in_heap += 1
            if fresh or item_score[item] == -np.inf:
                continue

            pops += 1
            hypothesis = members[group_first[group] + item_row[item]]
            option = options.order[options_first + item_column[item]]
            new = hypotheses
            hypotheses += 1
            score[new] = item_score[item]
            total[new] = item_score[item] + cube_future[cube]
            previous[new] = hypothesis
            option_of[new] = option
            start_of[new] = start
            end_of[new] = end
            gap_of[new] = cube_gap[cube]
            mask_of[new] = cube_mask[cube]
            states[new] = item_states[item]
            next_worse[new] = -1
            written[new] = 0
            if forced:
                target = options.target[option]
                length = options.word_offsets[target + 1] - options.word_offsets[target]
                written[new] = written[hypothesis] + length

            # Recombine with a hypothesis that no future word can tell from this one.
            mixed = ((cube_gap[cube] * 31 + cube_mask[cube]) * 31 + end) * 31 + written[new]
            for model in range(models):
                mixed = (mixed ^ states[new, model]) * -7046029254386353131
            slot = (mixed ^ (mixed >> 32)) & (slots - 1)
            while table[slot] >= 0:
                other = table[slot]
                same = (
                    gap_of[other] == gap_of[new]
                    and mask_of[other] == mask_of[new]
                    and end_of[other] == end
                    and written[other] == written[new]
                )
                if same and options.orientation:
                    same = start_of[other] == start and (
                        options.forward_class[option_of[other]] == options.forward_class[option]
                    )
                for model in range(models):
                    same = same and states[other, model] == states[new, model]
                if same:
                    break
                slot = (slot + 1) & (slots - 1)
            other = table[slot]
            if other < 0:
                table[slot] = new
            elif score[new] > score[other]:
                next_worse[new] = other
                table[slot] = new
            else:
                next_worse[new] = next_worse[other]
                next_worse[other] = new

        # Keep the best, and group them.
        kept = table[table >= 0]
        kept = kept[np.argsort(kept)]  # equal totals: the earlier first
        kept = kept[np.argsort(-total[kept], kind="mergesort")]
        if complete:
            complete_hypotheses = kept
            break
        kept = kept[: limits.stack]
        group_of = np.empty(len(kept), np.int64)
        table[:] = -1  # now: the first of kept of each group
        sizes = np.zeros(len(kept) + 1, np.int64)
        new_groups = 0
        for index in range(len(kept)):
            hypothesis = kept[index]
            mixed = (gap_of[hypothesis] * 31 + mask_of[hypothesis]) * 31 + end_of[hypothesis]
            mixed *= -7046029254386353131
            slot = (mixed ^ (mixed >> 32)) & (slots - 1)
            while table[slot] >= 0:
                other = kept[table[slot]]
                if (
                    gap_of[other] == gap_of[hypothesis]
                    and mask_of[other] == mask_of[hypothesis]
                    and end_of[other] == end_of[hypothesis]
                ):
                    break
                slot = (slot + 1) & (slots - 1)
            if table[slot] < 0:
                table[slot] = index
                group_of[index] = new_groups
                new_groups += 1
            else:
                group_of[index] = group_of[table[slot]]
            sizes[group_of[index]] += 1
        place = group_first[groups]
        for group in range(new_groups):
            group_first[groups + group] = place
            place += sizes[group]
        group_first[groups + new_groups] = place
        filled = np.zeros(new_groups, np.int64)
        for index in range(len(kept)):
            group = group_of[index]
            members[group_first[groups + group] + filled[group]] = kept[index]
            filled[group] += 1
        groups += new_groups
        stack_groups[stack + 1] = groups

    return Graph(
        score[:hypotheses].copy(),
        previous[:hypotheses].copy(),
        option_of[:hypotheses].copy(),
        start_of[:hypotheses].copy(),
        end_of[:hypotheses].copy(),
        next_worse[:hypotheses].copy(),
        complete_hypotheses,
    )


__all__ = ["Graph", "Limits", "Lookups", "Options", "orientation", "search"]
