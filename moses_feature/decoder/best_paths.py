"""The best complete translations of a recombination graph, best first, and their features.

A path deviates from a better one where it takes a hypothesis that recombined with a better
hypothesis. Whatever follows is the same, so the two scores differ by a constant. Each path popped
from the heap pushes its deviations nearer to the beginning of the sentence, and the next worse
hypothesis at its own deviation: every path of the graph is reached once, in exact order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moses_feature.decoder.graph import Graph
from moses_feature.decoder.options import Options
from moses_feature.decoder.stacks import pop, push
from moses_feature.runtime.arrays import Floats, Integers, Record, Records
from moses_feature.runtime.compiled import INT_0, INT_1, compiled, constant, helper
from moses_feature.runtime.hash_table import grown, mixed, place_of, size_for

CANDIDATE = np.dtype(
    [
        ("parent", "i8"),  # the path that it deviates from, or `NO_PATH`
        ("place", "i8"),  # where it deviates, counted from the last phrase
        ("hypothesis", "i8"),  # the hypothesis that stands there instead
    ]
)
NO_PATH = constant(-1)
"""The parent of a path that deviates from none."""


class OpenPaths(NamedTuple):
    """Paths that are known but not yet taken.

    Attributes:
        records: (capacity,) `CANDIDATE` records.
        score: (capacity,) log-linear scores.
        heap: (capacity,) the waiting paths, a heap by score.
        counts: (2,) the number of paths in use (`USED`) and of paths waiting (`WAITING`).
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
    """Return the best paths of a graph, best first.

    Args:
        graph: the graph of a search.
        options: the phrase options of that search.
        count: the number of paths to return, at most.
        most_paths: the number of paths to look at, at most, to find `count` distinct ones.
        distinct: leave out a path whose translation is that of a better one.

    Returns:
        Hypotheses (paths, longest) of each path, those of the last phrase first, and the length
        (paths,) of each path.
    """
    longest = 1
    for hypothesis in graph.hypotheses:  # a phrase covers at least one word
        longest = max(longest, hypothesis.end + 1)
    taken = np.empty((most_paths, longest), np.int64)
    lengths = np.empty(most_paths, np.int64)
    wanted = np.empty(count, np.int64)
    seen = np.zeros(size_for(most_paths), np.int64)
    candidates = OpenPaths(
        np.empty(64, CANDIDATE), np.empty(64), np.empty(64, np.int64), np.zeros(2, np.int64)
    )
    for best in graph.complete:
        _sort_worse(best, graph.hypotheses)
        candidates = _add(candidates, graph, best, 0.0, NO_PATH, INT_0)
    is_sorted = np.zeros(len(graph.hypotheses), np.bool_)
    paths = found = INT_0
    while candidates.counts[WAITING] > 0 and found < count and paths < most_paths:
        number = pop(candidates.heap, candidates.score, candidates.counts[WAITING])
        candidates.counts[WAITING] -= 1
        record = candidates.records[number]
        place, parent, score = record.place, record.parent, candidates.score[number]
        lengths[paths] = _write(record, taken, paths, graph.hypotheses)
        last = graph.hypotheses[record.hypothesis]
        around = score - last.score
        candidates = _add(candidates, graph, last.next_worse, around, parent, place)
        # Deviate only further back than this path did, or a path would be reached twice.
        for deviation in range(place + 1, lengths[paths]):
            best = taken[paths, deviation]
            if not is_sorted[best]:
                _sort_worse(best, graph.hypotheses)
                is_sorted[best] = True
            there = graph.hypotheses[best]
            around = score - there.score
            candidates = _add(candidates, graph, there.next_worse, around, paths, deviation)
        if not distinct or _is_new(taken[paths, : lengths[paths]], graph, options, seen):
            wanted[found] = paths
            found += 1
        paths += 1
    wanted = wanted[:found]
    return taken[wanted], lengths[wanted]


@helper
def _sort_worse(best: int, hypotheses: Records) -> None:
    """Sort the hypotheses that recombined with `best` behind it, best first."""
    placed = best  # the last hypothesis of the sorted part
    while hypotheses[placed].next_worse >= 0:
        moved = hypotheses[placed].next_worse
        before = best
        while before != placed:
            following = hypotheses[before].next_worse
            if hypotheses[following].score < hypotheses[moved].score:
                break
            before = following
        if before == placed:
            placed = moved
        else:
            hypotheses[placed].next_worse = hypotheses[moved].next_worse
            hypotheses[moved].next_worse = hypotheses[before].next_worse
            hypotheses[before].next_worse = moved


@helper(inline=False)
def _add(
    candidates: OpenPaths, graph: Graph, hypothesis: int, around: float, parent: int, place: int
) -> OpenPaths:
    """Add the path that has a hypothesis at a place; nothing if the hypothesis is -1.

    `around` is the score of the rest of the path, `place` is counted from the last phrase. Return
    `candidates`, or a larger copy.
    """
    if hypothesis < 0:
        return candidates
    used, waiting = candidates.counts[USED], candidates.counts[WAITING]
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
    push(candidates.heap, candidates.score, waiting, used)
    candidates.counts[USED] += 1
    candidates.counts[WAITING] += 1
    return candidates


@helper
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


@helper
def _is_new(path: Integers, graph: Graph, options: Options, seen: Integers) -> bool:
    """Return whether the words of a path are new, by a 64-bit hash; remember them."""
    hashed = INT_1
    for place in range(len(path) - 1, -1, -1):
        target = options.target[graph.hypotheses[path[place]].option]
        for word in range(options.word_offsets[target], options.word_offsets[target + 1]):
            hashed = mixed(hashed, options.words[word] + 1)
    hashed = hashed if hashed != 0 else 1
    slot = place_of(seen, hashed)
    new = seen[slot] == 0
    seen[slot] = hashed
    return new
