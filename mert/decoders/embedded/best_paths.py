"""The best complete translations of a recombination graph, best first, and their features.

A path differs from a better one in a hypothesis that had recombined with a better one; all
continuations are the same, so that its score differs by a constant. Each path taken from the heap
yields its deviations further back: every path of the graph is reached once, in exact order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mert.decoders.embedded.heap import grown, pop, push
from mert.decoders.embedded.lookups import END_OF_SENTENCE, score_word
from mert.decoders.embedded.records import Graph, Layout, Lookups, Options
from mert.decoders.embedded.search import orientation
from mert.hash_table import mixed, place_of, size_for
from moses_feature.arrays import Floats, Integers, Record, Records
from moses_feature.compiled import compiled, inner

CANDIDATE = np.dtype(
    [
        ("parent", "i8"),  # the path that it deviates from, -1 for none
        ("place", "i8"),  # where, counted from the last phrase
        ("hypothesis", "i8"),  # what stands there instead
    ]
)


class OpenPaths(NamedTuple):
    """Paths that were not taken yet.

    Attributes:
        records: (room,) `CANDIDATE` records.
        score: (room,) log-linear scores.
        heap: (room,) a heap of those that wait, by score.
        counts: (2,) how many are in use, and how many wait.
    """

    records: Records
    score: Floats
    heap: Integers
    counts: Integers


USED, WAITING = range(2)


@compiled
def best_paths(
    graph: Graph, options: Options, count: int, most_paths: int, distinct: bool
) -> tuple[Integers, Integers]:
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
    seen = np.zeros(size_for(most_paths), np.int64)
    candidates = OpenPaths(
        np.empty(64, CANDIDATE), np.empty(64), np.empty(64, np.int64), np.zeros(2, np.int64)
    )
    for best in graph.complete:
        candidates = _add(candidates, graph, best, 0.0, -1, 0)
    paths = found = 0
    while candidates.counts[WAITING] > 0 and found < count and paths < most_paths:
        number = pop(candidates.heap, candidates.score, candidates.counts[WAITING])
        candidates.counts[WAITING] -= 1
        record = candidates.records[number]
        place = record.place
        score = candidates.score[number]
        lengths[paths] = _write(record, taken, paths, graph.hypotheses)
        # Its deviations: further back than its own, or paths would be reached twice.
        for deviation in range(place + 1, lengths[paths]):
            there = graph.hypotheses[taken[paths, deviation]]
            around = score - there.score
            candidates = _add(candidates, graph, there.next_worse, around, paths, deviation)
        if not distinct or _is_new(taken[paths, : lengths[paths]], graph, options, seen):
            wanted[found] = paths
            found += 1
        paths += 1
    wanted = wanted[:found]
    return taken[wanted], lengths[wanted]


@compiled
def _add(
    candidates: OpenPaths, graph: Graph, hypothesis: int, around: float, parent: int, place: int
) -> OpenPaths:
    """Add a hypothesis and the worse ones behind it.

    Args:
        candidates: to which they are added; returned, or larger ones.
        graph: of the search.
        hypothesis: the best of those that stand at the place; -1 for none.
        around: score of what is around them on the path.
        parent: the path that they deviate from, -1 for none.
        place: where, counted from the last phrase.
    """
    while hypothesis >= 0:
        used = candidates.counts[USED]
        if used == len(candidates.records):
            candidates = OpenPaths(
                grown(candidates.records, 2 * used),
                grown(candidates.score, 2 * used),
                grown(candidates.heap, 2 * used),
                candidates.counts,
            )
        record = candidates.records[used]
        record.parent = parent
        record.place = place
        record.hypothesis = hypothesis
        candidates.score[used] = around + graph.hypotheses[hypothesis].score
        push(candidates.heap, candidates.score, candidates.counts[WAITING], used)
        candidates.counts[USED] += 1
        candidates.counts[WAITING] += 1
        hypothesis = graph.hypotheses[hypothesis].next_worse
    return candidates


@inner
def _write(candidate: Record, taken: Integers, path: int, hypotheses: Records) -> int:
    """Write a candidate as a row of `taken`, and return its length."""
    for place in range(candidate.place):
        taken[path, place] = taken[candidate.parent, place]
    length: int = candidate.place
    hypothesis = candidate.hypothesis
    while hypothesis > 0:
        taken[path, length] = hypothesis
        length += 1
        hypothesis = hypotheses[hypothesis].previous
    return length


@inner
def _is_new(path: Integers, graph: Graph, options: Options, seen: Integers) -> bool:
    """Return whether no path before had the same words, by a 64-bit hash."""
    hashed = 1
    for place in range(len(path) - 1, -1, -1):
        target = options.target[graph.hypotheses[path[place]].option]
        for word in range(options.word_offsets[target], options.word_offsets[target + 1]):
            hashed = mixed(hashed, options.words[word] + 1)
    hashed = hashed if hashed != 0 else 1
    slot = place_of(seen, hashed)
    new = seen[slot] == 0
    seen[slot] = hashed
    return new


@compiled
def path_features(
    graph: Graph, options: Options, path: Integers, layout: Layout, lookups: Lookups
) -> Floats:
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
def _add_models(
    values: Floats,
    states: Integers,
    target: int,
    options: Options,
    lookups: Lookups,
    layout: Layout,
) -> None:
    """Add the language models' scores of a target phrase to the values, and move the states."""
    for model in range(len(states)):
        for place in range(options.word_offsets[target], options.word_offsets[target + 1]):
            score, states[model] = score_word(lookups, states[model], options.words[place])
            values[layout.lm_columns[model]] += score
