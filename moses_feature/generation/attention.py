"""Which source words a network looks at while it writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moses_feature.search.prefixes import SearchPrefixes


def looked_at(
    prefixes: SearchPrefixes, lengths: Sequence[int], targets: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return the place of the source word that each target word looks at most.

    Args:
        prefixes: empty ones of some source phrases.
        lengths: words of the source phrases, one at least.
        targets: ids of the words of a target of each, in the order in which they are written.
    """
    found: list[list[int]] = [[] for _ in targets]
    going_on = list(range(len(targets)))
    for step in range(max(map(len, targets), default=0)):
        stays = [place for place, number in enumerate(going_on) if len(targets[number]) > step]
        going_on = [going_on[place] for place in stays]
        for number, row in zip(going_on, prefixes.alignments[stays], strict=True):
            found[number].append(int(row[: lengths[number]].argmax()))
        words = np.array([targets[number][step] for number in going_on], dtype=np.int64)
        prefixes = prefixes.grown(np.array(stays, dtype=np.int64), words)
    return found
