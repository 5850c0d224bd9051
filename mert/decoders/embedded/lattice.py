"""The lattice of a search: its graph without the paths of low scores, with feature values.

Hypotheses that recombined are the edges into a node: from there on, all of them have the same
continuations, and these add the same values. With models of trees this is an approximation; the
values are then those of the best hypothesis of each node, as in the search.
"""

from __future__ import annotations

import numpy as np

from mert.decoders.embedded.path_features import add_ends, add_models, add_phrase
from mert.decoders.embedded.records import Graph, Layout, Lookups, Options
from mert.lattices.lattice import BEGINNING
from moses_feature.arrays import Flags, Floats, Integers
from moses_feature.compiled import compiled, part

EDGES_OF_A_WORD = 50
"""Edges that a lattice keeps for each source word, those of the best paths."""
ROUNDING = 1e-9
"""Scores of one path, added up in two ways, differ by less."""


@compiled
def lattice_edges(graph: Graph, most: int) -> tuple[Integers, Integers, Integers]:
    """Choose the hypotheses that are the edges of a lattice.

    Args:
        graph: of a search.
        most: edges at most; of equally good paths there may be more.

    Returns:
        hypotheses (edges,), those that lead into a node together and the best of them first; the
        node (edges,) that each follows, `BEGINNING` for none; and where the edges of each node
        begin, and the end (nodes + 1,). All complete hypotheses lead into the last node.
    """
    hypotheses = graph.hypotheses
    best_of = _best_of_recombined(graph)
    through = _through(graph, best_of)
    reached = np.sort(through[through > -np.inf])
    least = reached[max(0, len(reached) - most)] - ROUNDING if len(reached) else np.inf
    kept = through >= least
    edges = np.empty(kept.sum(), np.int64)
    tails = np.empty(len(edges), np.int64)
    nodes = np.zeros(len(edges) + 2, np.int64)
    node_of = np.full(len(hypotheses), BEGINNING, np.int64)
    used = made = 0
    is_complete = np.zeros(len(hypotheses), np.bool_)
    is_complete[graph.complete] = True
    for best in range(1, len(hypotheses)):
        if best_of[best] != best or not kept[best] or is_complete[best]:
            continue
        used = _add_edges(best, graph, kept, best_of, node_of, edges, tails, used)
        node_of[best] = made
        made += 1
        nodes[made] = used
    for best in graph.complete:
        used = _add_edges(best, graph, kept, best_of, node_of, edges, tails, used)
    if used > 0:
        made += 1
        nodes[made] = used
    return edges, tails, nodes[: made + 1]


@part
def _best_of_recombined(graph: Graph) -> Integers:
    """Return (hypotheses,) the best one of those that each recombined with."""
    best_of = np.arange(len(graph.hypotheses))
    for hypothesis in range(len(best_of) - 1, -1, -1):
        worse = graph.hypotheses[hypothesis].next_worse
        if worse >= 0:
            best_of[worse] = -1
    for best in range(len(best_of)):
        if best_of[best] == best:
            worse = graph.hypotheses[best].next_worse
            while worse >= 0:
                best_of[worse] = best
                worse = graph.hypotheses[worse].next_worse
    return best_of


@part
def _through(graph: Graph, best_of: Integers) -> Floats:
    """Return (hypotheses,) the score of the best complete path through each, -inf for none."""
    hypotheses = graph.hypotheses
    through = np.full(len(hypotheses), -np.inf)
    to_end = np.full(len(hypotheses), -np.inf)  # of the best of those that recombined
    to_end[graph.complete] = 0.0
    for hypothesis in range(len(hypotheses) - 1, 0, -1):
        there = hypotheses[hypothesis]
        rest = to_end[best_of[hypothesis]]
        if rest > -np.inf:
            through[hypothesis] = there.score + rest
            before = there.previous
            step = there.score - hypotheses[before].score
            to_end[before] = max(to_end[before], step + rest)
    return through


@part
def _add_edges(
    best: int,
    graph: Graph,
    kept: Flags,
    best_of: Integers,
    node_of: Integers,
    edges: Integers,
    tails: Integers,
    used: int,
) -> int:
    """Add those that recombined with a hypothesis, if they are kept; return how many there are."""
    hypothesis = best
    while hypothesis >= 0:
        if kept[hypothesis]:
            edges[used] = hypothesis
            tails[used] = node_of[best_of[graph.hypotheses[hypothesis].previous]]
            used += 1
        hypothesis = graph.hypotheses[hypothesis].next_worse
    return used


@compiled
def features_of_edges(
    graph: Graph,
    options: Options,
    edges: Integers,
    tails: Integers,
    nodes: Integers,
    layout: Layout,
    windows: Integers,
    roots: Integers,
    lookups: Lookups,
) -> Floats:
    """Return the feature values (edges, features) that each edge adds.

    Args:
        graph: of a search.
        options: the phrase options of that search.
        edges: see `lattice_edges`, as `tails` and `nodes`.
        tails: (edges,)
        nodes: (nodes + 1,)
        layout: where the values of which feature stand.
        windows: (joint models, words) numbers of the windows around the words of the sentence.
        roots: (models of trees,) their states at the beginning of the sentence.
        lookups: of the language models.
    """
    values = np.zeros((len(edges), layout.size))
    begin = np.concatenate((options.begin_states, roots))
    states = np.empty((len(nodes), len(begin)), np.int64)  # after the first edge into each node
    for node in range(len(nodes) - 1):
        for edge in range(nodes[node], nodes[node + 1]):
            last = graph.hypotheses[edges[edge]]
            of_edge = begin.copy() if tails[edge] == BEGINNING else states[tails[edge]].copy()
            add_phrase(values[edge], graph.hypotheses[last.previous], last, layout)
            add_models(
                values[edge], of_edge, last.option, last.start, options, layout, windows, lookups
            )
            if edge == nodes[node]:
                states[node] = of_edge
            if node == len(nodes) - 2:
                target = options.target[last.option]
                add_ends(values[edge], of_edge, target, options, layout, lookups)
    return values
