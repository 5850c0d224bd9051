"""Which source word a target word belongs to, from word alignments.

Moses' rule (`moses/LM/BilingualLM.cpp`), which is that of Devlin et al. 2014 but for its reach:
of the source words that a word is aligned to the middle one, of an even number the one before the
middle; a word without any takes those of the nearest word that has some, of two as near the right
one.
"""

from __future__ import annotations

import numpy as np

from moses_feature.moses import alignments as text_of_links
from moses_feature.moses.alignments import PLACES, read_links
from moses_feature.runtime.arrays import Bytes, Integers
from moses_feature.runtime.compiled import compiled, part

NO_LINK = -1


def affiliations(alignment: bytes, source: int, target: int) -> Integers:
    """Return the place of the source word that each target word belongs to.

    Args:
        alignment: links such as `0-0 1-2`, source and target place, in any order.
        source: how many source words there are.
        target: how many target words.

    Raises:
        ValueError: it is something else, names other places, or is empty beside target words; the
            message is what was expected and what was found, as two arguments.
    """
    found = np.empty(target, dtype=np.int64)
    text = np.frombuffer(alignment, dtype=np.uint8)
    result = affiliate(text, 0, len(text), source, found)
    if result < 0:
        raise ValueError(*what_is_wrong(result, alignment, source, target))
    return found


def what_is_wrong(result: int, alignment: bytes, source: int, target: int) -> tuple[str, str]:
    """Return what was expected and what was found when `affiliate` failed."""
    if result == NO_LINK:
        return "word alignments, such as 0-0 1-1", "none"
    return text_of_links.what_is_wrong(result, alignment, source, target)


@compiled
def affiliate(text: Bytes, begin: int, end: int, source: int, found: Integers) -> int:
    """Write the affiliations (target words,) of a text of links; return less than 0 if it is bad.

    Args:
        text: in which the links stand.
        begin: where they begin …
        end: … and end.
        source: how many source words there are.
        found: overwritten.
    """
    target = len(found)
    links = np.empty((end - begin) // 3 + 1, np.int64)
    count = read_links(text, begin, end, source, target, links)
    if count < 0:
        return count
    if count == 0:
        return NO_LINK if target > 0 else 0
    links = np.sort(links[:count])
    found[:] = NO_LINK
    first = 0
    while first < count:
        word = links[first] >> PLACES
        last = kept = first  # of the same link twice, one is kept
        while last < count and links[last] >> PLACES == word:
            if links[last] != links[kept]:
                kept += 1
                links[kept] = links[last]
            last += 1
        found[word] = links[first + (kept - first) // 2] & ((1 << PLACES) - 1)
        first = last
    _take_nearest(found)
    return count


@part
def _take_nearest(found: Integers) -> None:
    """Give each word without a link what the nearest one has; there must be one."""
    own = found.copy()
    for word in range(len(found)):
        distance = 0
        while found[word] == NO_LINK:
            distance += 1
            if word + distance < len(own) and own[word + distance] != NO_LINK:
                found[word] = own[word + distance]
            elif word - distance >= 0:
                found[word] = own[word - distance]
