"""A network of a model directory as a generator of targets, and the words of its targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moses_feature.networks.architectures import ARCHITECTURES
from moses_feature.networks.files import CONFIG, architecture_of
from moses_feature.phrases.generation.prefixes import (
    EmptyPrefixes,
    Prefixes,
    Written,
    draw,
    likeliest,
    longest_translation,
)
from moses_feature.phrases.table_words import AnyModel
from moses_feature.runtime.errors import FormatError

LOG_PROBS_TOGETHER = 1 << 24
"""The most log probabilities in memory at a time."""

PAIRS_TOGETHER = 256
"""Pairs for which attention is computed at a time."""

Ids = Sequence[int]


@dataclass(frozen=True)
class Generator:
    """A network that writes targets of source phrases, or of sentences.

    Attributes:
        model: the model of the network.
        empty: returns empty prefixes for the ids of source phrases.
    """

    model: AnyModel
    empty: EmptyPrefixes

    def samples(
        self, sources: Sequence[Ids], count: int, temperature: float = 1.0, seed: int = 1
    ) -> list[list[Written]]:
        """Draw targets of source phrases; see `draw`."""
        found = []
        for some in self._parts(sources, count):
            longest = [longest_translation(len(source)) for source in some]
            found += draw(self.empty(some), some, longest, count, temperature, seed)
        return found

    def likeliest(
        self, sources: Sequence[Ids], beam: int, banned: Sequence[int] = ()
    ) -> list[list[Written]]:
        """Search for the likeliest targets of source phrases; see `likeliest`."""
        found = []
        for some in self._parts(sources, beam):
            longest = [longest_translation(len(source)) for source in some]
            found += likeliest(self.empty(some), longest, beam, banned)
        return found

    def looked_at(
        self, sources: Sequence[Ids], targets: Sequence[Written]
    ) -> list[list[int]] | None:
        """Return the place of the source word to which each target word is aligned best.

        Args:
            sources: ids of the words of source phrases, which are not empty.
            targets: a target of each.

        Returns:
            Places for each target, first word first; None if the network has no attention.
        """
        found: list[list[int]] = []
        for first in range(0, len(sources), PAIRS_TOGETHER):
            some = slice(first, first + PAIRS_TOGETHER)
            ids = [target.ids for target in targets[some]]
            places = _looked_at(self.empty(sources[some]), [*map(len, sources[some])], ids)
            if places is None:
                return None
            found += places
        return [places[::-1] for places in found] if self.model.direction.right_to_left else found

    def words(self, written: Written) -> list[bytes]:
        """Return the words of a target, first word first; an unknown one is `<unk>`."""
        words = self.model.target.words(written.ids)
        return words[::-1] if self.model.direction.right_to_left else words

    def _parts(self, sources: Sequence[Ids], prefixes: int) -> Iterator[Sequence[Ids]]:
        """Yield source phrases in groups that fit memory, at most `prefixes` prefixes for each."""
        together = max(1, LOG_PROBS_TOGETHER // (prefixes * len(self.model.target)))
        for first in range(0, len(sources), together):
            yield sources[first : first + together]


def generator_of(directory: Path) -> Generator:
    """Read a network for phrases, or RNNsearch.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    architecture = architecture_of(directory)
    if architecture not in ARCHITECTURES:
        expected = f"architecture {' or '.join(ARCHITECTURES)}"
        raise FormatError(directory / CONFIG, expected, architecture)
    return Generator(*ARCHITECTURES[architecture].load("writer")(directory))


def _looked_at(
    prefixes: Prefixes, lengths: Sequence[int], targets: Sequence[Sequence[int]]
) -> list[list[int]] | None:
    """Return the best aligned source place of each target word; None without attention.

    Args:
        prefixes: an empty prefix for each source phrase.
        lengths: words of the source phrases, one at least.
        targets: a target of each, word ids in the order in which they are written.
    """
    found: list[list[int]] = [[] for _ in targets]
    going_on = list(range(len(targets)))
    for step in range(max(map(len, targets), default=0)):
        stays = [place for place, number in enumerate(going_on) if len(targets[number]) > step]
        going_on = [going_on[place] for place in stays]
        alignments = prefixes.alignments
        if alignments is None:
            return None
        for number, row in zip(going_on, alignments[stays], strict=True):
            found[number].append(int(row[: lengths[number]].argmax()))
        words = np.array([targets[number][step] for number in going_on], dtype=np.int64)
        prefixes = prefixes.grown(np.array(stays, dtype=np.int64), words)
    return found
