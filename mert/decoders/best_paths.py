"""The best complete translations of a recombination graph, best first, and their features.

A path differs from a better one in a hypothesis that had recombined with a better one; all
continuations are the same, so that its score differs by a constant. Each path taken from the heap
yields its deviations further back: every path of the graph is reached once, in exact order.
"""

from __future__ import annotations

import numpy as np

from mert.decoders.compiled import compiled
from mert.decoders.heap import grown, pop, push
from mert.decoders.language_model import END_OF_SENTENCE, score_word
from mert.decoders.search import orientation


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
        scores (paths,); offsets (paths + 1,); and hypotheses, path after path, the first phrase of
        the translation first.
    """
    room = 64
    longest = graph.hypotheses["end"].max() + 1  # a phrase covers at least one word
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
                priority = grown(priority, room)
                parent = grown(parent, room)
                place_of = grown(place_of, room)
                other_of = grown(other_of, room)
                heap = grown(heap, room)
            priority[candidates] = graph.hypotheses[other].score
            parent[candidates] = -1
            place_of[candidates] = 0
            other_of[candidates] = other
            push(heap, priority, in_heap, candidates)
            candidates += 1
            in_heap += 1
            other = graph.hypotheses[other].next_worse

    paths = 0
    while in_heap > 0 and kept < count and paths < most_paths:
        candidate = pop(heap, priority, in_heap)
        in_heap -= 1
        first = taken_first[paths]
        last = first
        while first + longest > len(taken):
            taken = grown(taken, 2 * len(taken))
        for place in range(place_of[candidate]):
            taken[last] = taken[taken_first[parent[candidate]] + place]
            last += 1
        hypothesis = other_of[candidate]
        while hypothesis > 0:
            taken[last] = hypothesis
            last += 1
            hypothesis = graph.hypotheses[hypothesis].previous
        taken_first[paths + 1] = last

        for place in range(place_of[candidate] + 1, last - first):
            best = taken[first + place]
            other = graph.hypotheses[best].next_worse
            while other >= 0:
                if candidates == room:
                    room *= 2
                    priority = grown(priority, room)
                    parent = grown(parent, room)
                    place_of = grown(place_of, room)
                    other_of = grown(other_of, room)
                    heap = grown(heap, room)
                priority[candidates] = (
                    priority[candidate]
                    - graph.hypotheses[best].score
                    + graph.hypotheses[other].score
                )
                parent[candidates] = paths
                place_of[candidates] = place
                other_of[candidates] = other
                push(heap, priority, in_heap, candidates)
                candidates += 1
                in_heap += 1
                other = graph.hypotheses[other].next_worse
        paths += 1

        if distinct:
            mixed = 1
            for place in range(last - 1, first - 1, -1):
                target = options.target[graph.hypotheses[taken[place]].option]
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
            found = grown(found, 2 * len(found))
        for place in range(size):
            found[found_first[kept] + place] = taken[last - 1 - place]
        found_score[kept] = priority[candidate]
        kept += 1
        found_first[kept] = found_first[kept - 1] + size

    size = found_first[kept]
    return found_score[:kept].copy(), found_first[: kept + 1].copy(), found[:size].copy()


@compiled
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
