"""Trees of prefixes whose nodes are computed when they are asked for; compiled, free of torch."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import threaded

Tree = NDArray[np.int32]
"""(nodes, 2) of each node its parent, below 0 for a root, and the id of its word."""
Rows = NDArray[np.int32]
"""(all nodes or more,) of each node the row of what is computed for it, or `NOT_KNOWN`."""

NOT_KNOWN = -1


A = TypeVar("A", bound=NDArray[Any])


def with_room(array: A, count: int) -> A:
    """Return an array with room for `count` rows: the same, or a copy that is twice as long."""
    if count <= len(array):
        return array
    grown: Any = np.empty((2 * count, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return cast("A", grown)


def with_rows(rows: Rows, count: int) -> Rows:
    """Return the rows of some nodes, with room for `count`; those of new nodes are not known."""
    grown = with_room(rows, count)
    grown[len(rows) :] = NOT_KNOWN
    return grown


@threaded
def missing_nodes(tree: Tree, nodes: Integers, row_of: Rows) -> tuple[NDArray[np.int32], Integers]:
    """Return nodes, and those on the way to them, that have no row, parents first.

    Args:
        tree: all nodes.
        nodes: some of them; what is below 0 stands for no node.
        row_of: their rows; those of the missing nodes are to be overwritten.

    Returns:
        The missing nodes, and where each level ends: nodes of a level have their parents on levels
        before it, or known.
    """
    found = np.empty(len(tree), dtype=np.int32)
    count = deepest = 0
    for node in nodes:
        begin, own = count, node
        while own >= 0 and row_of[own] == NOT_KNOWN:
            found[count] = own
            count += 1
            own = tree[own, 0]
        level = -row_of[own] - 1 if own >= 0 and row_of[own] < NOT_KNOWN else 0
        for place in range(count - 1, begin - 1, -1):
            row_of[found[place]] = -level - 2  # until it has a row
            level += 1
        deepest = max(deepest, level)
    ends = np.zeros(deepest + 1, dtype=np.int64)
    for place in range(count):
        ends[-row_of[found[place]] - 1] += 1
    ends = np.cumsum(ends)
    by_level, places = np.empty(count, dtype=np.int32), ends.copy()
    for place in range(count):
        level = -row_of[found[place]] - 2
        by_level[places[level]] = found[place]
        places[level] += 1
    return by_level, ends[1:]


@threaded
def paths(tree: Tree, nodes: NDArray[np.int32], row_of: Rows) -> tuple[Integers, Integers]:
    """Return the rows of the nodes on the way to some nodes, themselves last.

    Returns:
        (n, longest) rows, and (n,) the length of each path; what follows it is 0.
    """
    lengths = np.zeros(len(nodes), dtype=np.int64)
    for place in range(len(nodes)):
        node = nodes[place]
        while node >= 0:
            lengths[place] += 1
            node = tree[node, 0]
    found = np.zeros((len(nodes), lengths.max()), dtype=np.int64)
    for place in range(len(nodes)):
        node = nodes[place]
        for column in range(lengths[place] - 1, -1, -1):
            found[place, column] = row_of[node]
            node = tree[node, 0]
    return found, lengths
