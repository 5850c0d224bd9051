"""A plain twin of the operation sequence model: with the gaps, step by step, in a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import kenlm

Links = Sequence[tuple[int, int]]


@dataclass
class Phrase:
    """A phrase of a derivation; `start` is the place of its first source word."""

    start: int
    source: list[str]
    target: list[str]
    links: Links


@dataclass
class Derivation:
    """The operations of a sentence of some words, and what they count, by phrase."""

    words: int
    covered: set[int] = field(default_factory=set)
    gaps: dict[int, bool] = field(default_factory=dict)
    at: int = 0
    end: int = 0
    operations: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    def add(self, phrase: Phrase) -> tuple[list[str], list[int]]:
        """Return the operations of the next phrase, and its counts in the order of Moses."""
        self.operations, self.counts = [], [0, 0, 0, 0]
        covered, size = set(self.covered), len(phrase.source)
        linked_to: dict[int, set[int]] = {}
        for s, t in phrase.links:
            linked_to.setdefault(t, set()).add(s)
        self._unlinked = {
            phrase.start + s for s in range(size) if all(s != link[0] for link in phrase.links)
        }
        self._deleted = {t for t in range(len(phrase.target)) if t not in linked_to}
        if phrase.start in self._unlinked:
            self._cover(phrase.start, f"_INS_{phrase.source[0]}", "inserted", phrase)
        done: set[int] = set()
        self._delete(0, done, phrase)
        while linked_to:
            sources, targets = self._cept(linked_to)
            for target in targets:
                del linked_to[target]
            english = "^_^".join(phrase.target[t] for t in targets)
            german = "^_^".join(phrase.source[s] for s in sources)
            name = english if english == "_TRANS_SLF_" else f"_TRANS_{english}_TO_{german}"
            last = targets[0]
            for target in targets[1:]:
                if target == last + 1:
                    last += 1
                else:
                    done.add(target)
            self._cover(phrase.start + sources[0], name, "translated", phrase)
            for source in sources[1:]:
                self._cover(phrase.start + source, "_CONT_CEPT_", "continued", phrase)
            last += 1
            while last in done:
                last += 1
            self._delete(last, done, phrase)
        self.covered = covered | set(range(phrase.start, phrase.start + size))
        return self.operations, self.counts

    @staticmethod
    def _cept(linked_to: dict[int, set[int]]) -> tuple[list[int], list[int]]:
        targets = {min(linked_to)}
        while True:
            sources = set().union(*(linked_to[t] for t in targets))
            more = {t for t, of in linked_to.items() if of & sources}
            if more == targets:
                return sorted(sources), sorted(targets)
            targets = more

    def _delete(self, place: int, done: set[int], phrase: Phrase) -> None:
        if place in self._deleted:
            self.operations.append(f"_DEL_{phrase.target[place]}")
            place += 1
            while place in done:
                place += 1
            self._delete(place, done, phrase)

    def _cover(self, place: int, name: str, kind: str, phrase: Phrase) -> None:
        opened = False
        if self.at < place:
            if self.at not in self.covered:
                self.operations.append("_INS_GAP_")
                opened = self.gaps[self.at] = True
            if self.at == self.end:
                self.at = place
            else:
                self.operations.append("_JMP_FWD_")
                self.at = self.end
        if place < self.at:
            if self.at < self.end and self.at not in self.covered:
                self.operations.append("_INS_GAP_")
                opened = self.gaps[self.at] = True
            open_gaps = sorted((gap for gap, is_open in self.gaps.items() if is_open), reverse=True)
            self.at = next(gap for gap in open_gaps if gap <= place)
            self.operations.append(f"_JMP_BCK_{open_gaps.index(self.at) + 1}")
            if self.at == place:
                self.gaps[place] = False
        if self.at < place:
            self.operations.append("_INS_GAP_")
            opened = self.gaps[self.at] = True
            self.at = place
        self.operations.append(name)
        first = min(set(range(self.words)) - self.covered)
        self.counts[0] += self.at - first if kind != "continued" else 0
        self.counts[1] += opened
        self.counts[3] += kind == "inserted"
        self.covered.add(self.at)
        self.at += 1
        self.end = max(self.end, self.at)
        self.counts[2] += sum(self.gaps.values())
        if self.at in self._unlinked and self.at not in self.covered:
            word = phrase.source[self.at - phrase.start]
            self._cover(self.at, f"_INS_{word}", "inserted", phrase)


def plain_values(
    model: kenlm.Model, words: int, phrases: Sequence[Phrase], context: bool = True
) -> list[list[float]]:
    """Return the five values of each phrase: log10 p of its operations, and the counts."""
    state = kenlm.State()
    if context:
        model.BeginSentenceWrite(state)
    else:
        model.NullContextWrite(state)
    derivation, values = Derivation(words), []
    for phrase in phrases:
        operations, counts = derivation.add(phrase)
        total = 0.0
        for operation in operations:
            following = kenlm.State()
            total += model.BaseScore(state, operation, following)
            state = following
        values.append([total, *counts])
    return values
