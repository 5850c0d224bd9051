"""The operations of phrase pairs, for an operation sequence model; see `operations`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from moses_feature.runtime.arrays import Floats, Integers

OPERATION_VALUES = 5
TRANSLATED, CONTINUED, INSERTED, DELETED = range(4)
"""Kinds of operations; see `OperationStep`."""
UNKNOWN_WORD = b"_TRANS_SLF_"
JUMPS_BACK = 32
WORDS = (
    b"_INS_GAP_",
    b"_JMP_FWD_",
    *(b"_JMP_BCK_%d" % gap for gap in range(JUMPS_BACK)),
)
"""Operations that name no word. A jump back over more gaps is taken for the longest one."""
NO_OPERATION = -1
INSERT_GAP, JUMP_FORWARD, JUMP_BACK = range(3)
"""Places in `WORDS`."""

Links = Sequence[tuple[int, int]]


class Operations(NamedTuple):
    """The operations of the phrase options, for an operation sequence model.

    Attributes:
        model: its number among the language models; that of no model if there is none.
        offsets: (n + 1,) where the operations of each option begin.
        steps: (operations, 3) their places, kinds and words; see `OperationStep`.
        words: the numbers of `operations.WORDS`.
        values: how many it has: 5, or log p alone.
        weights: (5,) of its values; 0 for those that it does not have.
    """

    model: int
    offsets: Integers
    steps: Integers
    words: Integers
    values: int
    weights: Floats


class OperationStep(NamedTuple):
    """An operation of a phrase pair.

    Attributes:
        place: the source word that it covers, counted from the first one of the phrase.
        kind: `TRANSLATED`: the first word of a cept, `CONTINUED`: another one, `INSERTED`, or
            `DELETED`.
        word: its name.
    """

    place: int
    kind: int
    word: bytes


def steps_of(source: Sequence[bytes], target: Sequence[bytes], links: Links) -> list[OperationStep]:
    """Return the operations of a phrase pair that do not depend on what is translated before.

    Args:
        source: the source words.
        target: the target words; `UNKNOWN_WORD` for one that is copied.
        links: places of linked words.
    """
    pair = _OperatingPair(source, target, links)
    if 0 in pair.unlinked:
        pair.cover(0, INSERTED, b"_INS_" + source[0])
    pair.delete(0)
    for of_source, of_target in cepts_of(links):
        word = b"^_^".join(target[t] for t in of_target)
        if word != UNKNOWN_WORD:
            word = b"_TRANS_%b_TO_%b" % (word, b"^_^".join(source[s] for s in of_source))
        pair.cover(of_source[0], TRANSLATED, word)
        for place in of_source[1:]:
            pair.cover(place, CONTINUED, b"_CONT_CEPT_")
        last = of_target[0]
        for place in of_target[1:]:
            if place == last + 1:
                last = place
            else:
                pair.done.add(place)
        pair.delete(pair.behind(last))
    return pair.steps


class _OperatingPair:
    """A phrase pair whose operations are being found.

    Attributes:
        unlinked: its source words without links.
        done: target words behind a gap in their cept.
        steps: the operations.
    """

    def __init__(self, source: Sequence[bytes], target: Sequence[bytes], links: Links) -> None:
        self.unlinked = set(range(len(source))) - {s for s, _ in links}
        self.done: set[int] = set()
        self.steps: list[OperationStep] = []
        self._source, self._target = source, target
        self._deleted = set(range(len(target))) - {t for _, t in links}
        self._covered: set[int] = set()

    def cover(self, place: int, kind: int, word: bytes) -> None:
        """Cover a source word, and those without links behind it."""
        self.steps.append(OperationStep(place, kind, word))
        self._covered.add(place)
        following = place + 1
        while following in self.unlinked and following not in self._covered:
            self.steps.append(
                OperationStep(following, INSERTED, b"_INS_" + self._source[following])
            )
            self._covered.add(following)
            following += 1

    def delete(self, place: int) -> None:
        """Delete target words without links from a place on."""
        while place in self._deleted:
            self.steps.append(OperationStep(0, DELETED, b"_DEL_" + self._target[place]))
            place = self.behind(place)

    def behind(self, place: int) -> int:
        """Return the next target word that is not done."""
        place += 1
        while place in self.done:
            place += 1
        return place


def cepts_of(links: Links) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the source and target words of each group of linked words, the first target first."""
    of_target: dict[int, set[int]] = defaultdict(set)
    of_source: dict[int, set[int]] = defaultdict(set)
    for source, target in links:
        of_target[target].add(source)
        of_source[source].add(target)
    seen: set[int] = set()
    for first in sorted(of_target):
        if first not in seen:
            sources: set[int] = set()
            targets: set[int] = set()
            more = {first}
            while more:
                targets |= more
                sources |= {source for target in more for source in of_target[target]}
                more = {target for source in sources for target in of_source[source]} - targets
            seen |= targets
            yield sorted(sources), sorted(targets)


def way(gap: int, mask: int, end: int, at: int, place: int) -> tuple[int, int, int, int]:
    """Return the operations from a place to another one: a gap, a jump forward, one back, a gap.

    Args:
        gap: the first source word that is not covered.
        mask: which words are covered from there on, as bits.
        end: the place behind the last covered word.
        at: the place behind the last operation.
        place: that of the next one, which is not covered.

    Returns:
        Places in `WORDS`, `NO_OPERATION` for none.
    """
    leaves = forward = back = enters = NO_OPERATION
    is_left = at >= gap and mask >> (at - gap) & 1 == 0 and (at < end or at < place)
    if is_left and at != place:
        leaves = INSERT_GAP
    if at < place:
        if at == end:
            at = place
        else:
            forward = JUMP_FORWARD
            at = end
    if place < at:
        at = place
        while at > gap and mask >> (at - 1 - gap) & 1 == 0:
            at -= 1
        gaps = 0
        for word in range(at, end):
            begins = word == gap or mask >> (word - 1 - gap) & 1 == 1
            if begins and mask >> (word - gap) & 1 == 0:
                gaps += 1
        back = JUMP_BACK + min(gaps, JUMPS_BACK - 1)
    if at < place:
        enters = INSERT_GAP
    return leaves, forward, back, enters


def no_operations(model: int) -> Operations:
    """Return the operations of a system without such a model; `model` is that of the next kind."""
    none = np.zeros(0, dtype=np.int64)
    weights = np.zeros(OPERATION_VALUES)
    return Operations(model, none, np.zeros((0, 3), dtype=np.int64), none, 0, weights)


def numbered_steps(
    steps: Sequence[Sequence[OperationStep]], numbered: int
) -> tuple[Operations, list[bytes]]:
    """Return the operations of all options, and their words.

    Args:
        steps: of each option.
        numbered: the number of the first word; the others follow.
    """
    numbers = {word: numbered + number for number, word in enumerate(WORDS)}
    rows = [
        (step.place, step.kind, numbers.setdefault(step.word, numbered + len(numbers)))
        for of_option in steps
        for step in of_option
    ]
    operations = no_operations(0)._replace(
        offsets=np.cumsum([0, *map(len, steps)]),
        steps=np.array(rows, dtype=np.int64).reshape(-1, 3),
        words=np.arange(numbered, numbered + len(WORDS)),
    )
    return operations, [*numbers]
