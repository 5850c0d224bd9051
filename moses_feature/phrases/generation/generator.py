"""A network of a model directory as a generator of targets, and the words of its targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_feature.networks.architectures import ARCHITECTURES
from moses_feature.networks.files import CONFIG, architecture_of
from moses_feature.phrases.generation.prefixes import (
    EmptyPrefixes,
    Written,
    draw,
    likeliest,
    longest_translation,
)
from moses_feature.phrases.table_words import AnyModel
from moses_feature.runtime.errors import FormatError

LOG_PROBS_TOGETHER = 1 << 24
"""The most log probabilities in memory at a time."""

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
