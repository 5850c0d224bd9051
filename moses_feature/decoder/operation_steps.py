"""The operations of phrase pairs, for an operation sequence model; see `operations`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from moses_feature.decoder.records import (
    CONTINUED,
    DELETED,
    INSERTED,
    OPERATION_VALUES,
    TRANSLATED,
    Operations,
)

UNKNOWN_WORD = b"_TRANS_SLF_"
JUMPS_BACK = 32
WORDS = (
    b"_INS_GAP_",
    b"_JMP_FWD_",
    *(b"_JMP_BCK_%d" % gap for gap in range(JUMPS_BACK)),
)
"""Operations that name no word. A jump back over more gaps is taken for the longest one."""

Links = Sequence[tuple[int, int]]


class Step(NamedTuple):
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


def steps_of(source: Sequence[bytes], target: Sequence[bytes], links: Links) -> list[Step]:
    """Return the operations of a phrase pair that do not depend on what is translated before.

    Args:
        source: the source words.
        target: the target words; `UNKNOWN_WORD` for one that is copied.
        links: places of linked words.
    """
    pair = _PhrasePair(source, target, links)
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


class _PhrasePair:
    """A phrase pair whose operations are being found.

    Attributes:
        unlinked: its source words without links.
        done: target words behind a gap in their cept.
        steps: the operations.
    """

    def __init__(self, source: Sequence[bytes], target: Sequence[bytes], links: Links) -> None:
        self.unlinked = set(range(len(source))) - {s for s, _ in links}
        self.done: set[int] = set()
        self.steps: list[Step] = []
        self._source, self._target = source, target
        self._deleted = set(range(len(target))) - {t for _, t in links}
        self._covered: set[int] = set()

    def cover(self, place: int, kind: int, word: bytes) -> None:
        """Cover a source word, and those without links behind it."""
        self.steps.append(Step(place, kind, word))
        self._covered.add(place)
        following = place + 1
        if following in self.unlinked and following not in self._covered:
            self.cover(following, INSERTED, b"_INS_" + self._source[following])

    def delete(self, place: int) -> None:
        """Delete target words without links from a place on."""
        while place in self._deleted:
            self.steps.append(Step(0, DELETED, b"_DEL_" + self._target[place]))
            place = self.behind(place)

    def behind(self, place: int) -> int:
        """Return the next target word that is not done."""
        place += 1
        while place in self.done:
            place += 1
        return place


def cepts_of(links: Links) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the source and target words of each group of linked words, the first target first."""
    left = set(links)
    while left:
        sources: set[int] = set()
        targets = {min(t for _, t in left)}
        size = 0
        while len(sources) + len(targets) > size:
            size = len(sources) + len(targets)
            sources |= {s for s, t in left if t in targets}
            targets |= {t for s, t in left if s in sources}
        yield sorted(sources), sorted(targets)
        left = {(s, t) for s, t in left if t not in targets}


def no_operations(model: int) -> Operations:
    """Return the operations of a system without such a model; `model` is that of the next kind."""
    none = np.zeros(0, dtype=np.int64)
    weights = np.zeros(OPERATION_VALUES)
    return Operations(model, none, np.zeros((0, 3), dtype=np.int64), none, 0, weights)


def numbered_steps(
    steps: Sequence[Sequence[Step]], numbered: int
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
