"""The best complete translations of a recombination graph, best first, and their features.

A path differs from a better one in a hypothesis that had recombined with a better one; all
continuations are the same, so that its score differs by a constant. Each path taken from the heap
yields its deviations further back: every path of the graph is reached once, in exact order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mert.decoders.language_model import END_OF_SENTENCE, score_word
from mert.decoders.search import _grown, _push, _sink, orientation


@njit(cache=True)
def best_paths(graph, options, count, most_paths, distinct):  # type: ignore[no-untyped-def]  # pragma: no cover  # noqa: C901, PLR0912, PLR0915
    """Find the best paths.

    Args:
        graph: of a search.
        options: the phrase options of that search.
        count: paths that are wanted.
        most_paths: paths that are looked at, for translations that differ.
        distinct: leave out a path whose translation is that of a better one.

    Returns:
        scores (paths,); offsets (paths + 1,); and hypotheses, path after path, the first phrase of
        the translation first.
    """
    room = 64
    longest = graph.end.max() + 1  # a phrase covers at least one word
    found_score = np.empty(count)
    found_first = np.zeros(count + 1, np.int64)
    found = np.empty(64, np.int64)
    kept = 0

    # Every path that was taken from the heap, last phrase first.
    taken = np.empty(256, np.int64)
    taken_first = np.zeros(most_paths + 1, np.int64)
    seen_slots = 16
    while seen_slots < 2 * most_paths:
        seen_slots *= 2
    seen = np.zeros(seen_slots if distinct else 1, np.int64)

    # Candidates: a taken path up to a place, then another hypothesis and what is before it.
    priority = np.empty(room)
    parent = np.empty(room, np.int64)
    place_of = np.empty(room, np.int64)
    other_of = np.empty(room, np.int64)
    heap = np.empty(room, np.int64)
    candidates = in_heap = 0
    for hypothesis in graph.complete:
        other = hypothesis
        while other >= 0:
            if candidates == room:
                room *= 2
                priority = _grown(priority, room)
                parent = _grown(parent, room)
                place_of = _grown(place_of, room)
                other_of = _grown(other_of, room)
                heap = _grown(heap, room)
            priority[candidates] = graph.score[other]
            parent[candidates] = -1
            place_of[candidates] = 0
            other_of[candidates] = other
            _push(heap, priority, in_heap, candidates)
            candidates += 1
            in_heap += 1
            other = graph.next_worse[other]

    paths = 0
    while in_heap > 0 and kept < count and paths < most_paths:
        candidate = heap[0]
        in_heap -= 1
        heap[0] = heap[in_heap]
        _sink(heap, priority, in_heap, 0)
        first = taken_first[paths]
        last = first
        while first + longest > len(taken):
            taken = _grown(taken, 2 * len(taken))
        for place in range(place_of[candidate]):
            taken[last] = taken[taken_first[parent[candidate]] + place]
            last += 1
        hypothesis = other_of[candidate]
        while hypothesis > 0:
            taken[last] = hypothesis
            last += 1
            hypothesis = graph.previous[hypothesis]
        taken_first[paths + 1] = last

        for place in range(place_of[candidate] + 1, last - first):
            best = taken[first + place]
            other = graph.next_worse[best]
            while other >= 0:
                if candidates == room:
                    room *= 2
                    priority = _grown(priority, room)
                    parent = _grown(parent, room)
                    place_of = _grown(place_of, room)
                    other_of = _grown(other_of, room)
                    heap = _grown(heap, room)
                priority[candidates] = (
                    priority[candidate] - graph.score[best] + graph.score[other]
                )
                parent[candidates] = paths
                place_of[candidates] = place
                other_of[candidates] = other
                _push(heap, priority, in_heap, candidates)
                candidates += 1
                in_heap += 1
                other = graph.next_worse[other]
        paths += 1

        if distinct:
            mixed = 1
            for place in range(last - 1, first - 1, -1):
                target = options.target[graph.option[taken[place]]]
                for word in range(options.word_offsets[target], options.word_offsets[target + 1]):
                    mixed = (mixed ^ (options.words[word] + 1)) * -7046029254386353131
                    mixed ^= mixed >> 29
            mixed = mixed if mixed != 0 else 1
            slot = (mixed ^ (mixed >> 32)) & (seen_slots - 1)
            while seen[slot] != 0 and seen[slot] != mixed:
                slot = (slot + 1) & (seen_slots - 1)
            if seen[slot] == mixed:
                continue
            seen[slot] = mixed
        size = last - first
        while found_first[kept] + size > len(found):
            found = _grown(found, 2 * len(found))
        for place in range(size):
            found[found_first[kept] + place] = taken[last - 1 - place]
        found_score[kept] = priority[candidate]
        kept += 1
        found_first[kept] = found_first[kept - 1] + size

    return found_score[:kept].copy(), found_first[: kept + 1].copy(), found[: found_first[kept]].copy()


@njit(cache=True)
def path_features(graph, options, lookups, path, layout):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Return the feature values (features,) of a path, natural logs or minus counts.

    Args:
        graph: of a search.
        options: the phrase options of that search.
        lookups: of the language models.
        path: hypotheses, the first phrase first.
        layout: where the values of which feature stand.
    """
    values = np.zeros(layout.size)
    previous_start = previous_end = last_option = -1
    states = options.begin_states.copy()
    for hypothesis in path:
        option = graph.option[hypothesis]
        start, end = graph.start[hypothesis], graph.end[hypothesis]
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
        target = options.target[option]
        for model in range(len(states)):
            total = 0.0
            state = states[model]
            for place in range(options.word_offsets[target], options.word_offsets[target + 1]):
                score, state = score_word(lookups, state, options.words[place])
                total += score
            states[model] = state
            values[layout.lm_columns[model]] += total
        previous_start, previous_end, last_option = start, end, option
    for model in range(len(states)):
        score, _ = score_word(lookups, states[model], END_OF_SENTENCE)
        values[layout.lm_columns[model]] += score
    return values
