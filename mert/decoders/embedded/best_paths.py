"""The best complete translations of a recombination graph, best first, and their features.

A path differs from a better one in a hypothesis that had recombined with a better one; all
continuations are the same, so that its score differs by a constant. Each path taken from the heap
yields its deviations further back: every path of the graph is reached once, in exact order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mert.decoders.embedded.compiled import compiled, inner
from mert.decoders.embedded.heap import grown, pop, push
from mert.decoders.embedded.language_model import END_OF_SENTENCE, score_word
from mert.decoders.embedded.records import HASH_FACTOR, Floats, Integers
from mert.decoders.embedded.search import orientation

CANDIDATE = np.dtype(
    [
        ("parent", "i8"),  # the path that it deviates from, -1 for none
        ("place", "i8"),  # where, counted from the last phrase
        ("hypothesis", "i8"),  # what stands there instead
    ]
)


class _Candidates(NamedTuple):
    """Paths that were not taken yet: `CANDIDATE` records, their scores, and a heap of them."""

    records: NDArray[np.void]
    score: Floats
    heap: Integers


@compiled
def best_paths(graph, options, count, most_paths, distinct):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Find the best paths.

    Args:
        graph: of a search.
        options: the phrase options of that search.
        count: paths that are wanted.
        most_paths: paths that are looked at, for translations that differ.
        distinct: leave out a path whose translation is that of a better one.

    Returns:
        hypotheses (paths, longest), the last phrase of a translation first, and how many they
        are (paths,).
    """
    longest = graph.hypotheses["end"].max() + 1  # a phrase covers at least one word
    taken = np.empty((most_paths, longest), np.int64)
    lengths = np.empty(most_paths, np.int64)
    wanted = np.empty(count, np.int64)
    seen = np.zeros(_slots_for(most_paths), np.int64)
    candidates = _Candidates(np.empty(64, CANDIDATE), np.empty(64), np.empty(64, np.int64))
    used = in_heap = 0
    for best in graph.complete:
        score = graph.hypotheses[best].score
        candidates, used, in_heap = _add(candidates, used, in_heap, graph, best, score, -1, 0)
    paths = found = 0
    while in_heap > 0 and found < count and paths < most_paths:
        number = pop(candidates.heap, candidates.score, in_heap)
        in_heap -= 1
        record = candidates.records[number]
        place = record.place
        score = candidates.score[number]
        lengths[paths] = _write(record, taken, paths, graph.hypotheses)
        for deviation in range(place + 1, lengths[paths]):
            other = graph.hypotheses[taken[paths, deviation]].next_worse
            difference = score - graph.hypotheses[taken[paths, deviation]].score
            candidates, used, in_heap = _add(
                candidates, used, in_heap, graph, other, difference, paths, deviation
            )
        if not distinct or _is_new(taken[paths, : lengths[paths]], graph, options, seen):
            wanted[found] = paths
            found += 1
        paths += 1
    wanted = wanted[:found]
    return taken[wanted], lengths[wanted]


@compiled
def _add(candidates, used, in_heap, graph, hypothesis, score, parent, place):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Add a hypothesis and the worse ones behind it; `score` is that of what is around them.

    For complete hypotheses (without a parent) there is nothing around.
    """
    while hypothesis >= 0:
        if used == len(candidates.records):
            candidates = _Candidates(
                grown(candidates.records, 2 * used),
                grown(candidates.score, 2 * used),
                grown(candidates.heap, 2 * used),
            )
        record = candidates.records[used]
        record.parent = parent
        record.place = place
        record.hypothesis = hypothesis
        of_hypothesis = graph.hypotheses[hypothesis].score
        candidates.score[used] = of_hypothesis if parent < 0 else score + of_hypothesis
        push(candidates.heap, candidates.score, in_heap, used)
        used += 1
        in_heap += 1
        hypothesis = graph.hypotheses[hypothesis].next_worse
    return candidates, used, in_heap


@inner
def _write(candidate, taken, path, hypotheses):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write a candidate as a row of `taken`, and return its length."""
    for place in range(candidate.place):
        taken[path, place] = taken[candidate.parent, place]
    length = candidate.place
    hypothesis = candidate.hypothesis
    while hypothesis > 0:
        taken[path, length] = hypothesis
        length += 1
        hypothesis = hypotheses[hypothesis].previous
    return length


@inner
def _is_new(path, graph, options, seen):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Tell whether no path before had the same words, by a 64-bit hash."""
    mixed = 1
    for place in range(len(path) - 1, -1, -1):
        target = options.target[graph.hypotheses[path[place]].option]
        for word in range(options.word_offsets[target], options.word_offsets[target + 1]):
            mixed = (mixed ^ (options.words[word] + 1)) * HASH_FACTOR
            mixed ^= mixed >> 29
    mixed = mixed if mixed != 0 else 1
    slot = (mixed ^ (mixed >> 32)) & (len(seen) - 1)
    while seen[slot] != 0 and seen[slot] != mixed:
        slot = (slot + 1) & (len(seen) - 1)
    new = seen[slot] == 0
    seen[slot] = mixed
    return new


@inner
def _slots_for(count):  # type: ignore[no-untyped-def]  # pragma: no cover
    slots = 16
    while slots < 2 * count:
        slots *= 2
    return slots


@compiled
def path_features(graph, options, path, layout, lookups):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the feature values (features,) of a path, natural logs or minus counts.

    Args:
        graph: of a search.
        options: the phrase options of that search.
        path: hypotheses, the last phrase first.
        layout: where the values of which feature stand.
        lookups: of the language models.
    """
    values = np.zeros(layout.size)
    previous_start = previous_end = last_option = -1
    states = options.begin_states.copy()
    for hypothesis in path[::-1]:
        last = graph.hypotheses[hypothesis]
        option, start, end = last.option, last.start, last.end
        for column in range(len(layout.fixed_columns)):
            values[layout.fixed_columns[column]] += layout.fixed[option, column]
        if layout.distortion >= 0:
            values[layout.distortion] -= abs(previous_end + 1 - start)
        how = orientation(previous_start, previous_end, start, end)
        for table in range(len(layout.backward_columns)):
            column = layout.backward_columns[table, how]
            if column >= 0:
                values[column] += layout.backward[option, table, how]
            column = layout.forward_columns[table, how]
            if column >= 0 and last_option >= 0:
                values[column] += layout.forward[last_option, table, how]
        previous_start, previous_end, last_option = start, end, option
        _add_models(values, states, options.target[option], options, lookups, layout)
    last_target = options.target[last_option]
    if options.word_offsets[last_target + 1] > options.word_offsets[last_target]:
        for model in range(len(states)):
            score, _ = score_word(lookups, states[model], END_OF_SENTENCE)
            values[layout.lm_columns[model]] += score
    return values


@inner
def _add_models(values, states, target, options, lookups, layout):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Add the language models' scores of a target phrase to the values, and move the states."""
    for model in range(len(states)):
        for place in range(options.word_offsets[target], options.word_offsets[target + 1]):
            score, states[model] = score_word(lookups, states[model], options.words[place])
            values[layout.lm_columns[model]] += score
