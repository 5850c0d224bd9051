"""States of a recurrence along phrases, computed once for all that begin alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moses_feature.arrays import Floats32, Integers
from moses_feature.models.phrases import Phrases
from moses_feature.scoring.prefix_tree import prefix_levels


def states_along(
    phrases: Phrases, start: Floats32, step: Callable[[Integers, Floats32], None], end: bool
) -> tuple[Floats32, Integers]:
    """Return the states after each word of phrases, and which of them each word has.

    Args:
        phrases: of word ids.
        start: (1, H) the state before the first word.
        step: puts the states (n, H) after words (n,) in the place of those before them.
        end: whether END is read after the words, too.

    Returns:
        states (distinct prefixes, H), and the row of each word (and END), phrase after phrase.
    """
    offsets = phrases.offsets + (np.arange(len(phrases) + 1) if end else 0)
    row_of = np.empty(offsets[-1], dtype=np.int64)
    state, found, count = start, [start[:0]], 0
    for position, level in enumerate(prefix_levels(phrases, np.zeros(len(phrases), np.int64))):
        read = level.grows | end
        state = state[level.parent[read]]
        step(level.word[read], state)
        found.append(state)
        has = read[level.edge_of_row]
        row_of_edge = count + np.cumsum(read) - 1
        row_of[offsets[level.rows[has]] + position] = row_of_edge[level.edge_of_row[has]]
        count += len(state)
        state = state[level.grows[read]]
    return np.concatenate(found), row_of
