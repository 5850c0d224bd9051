"""A network of a model directory that writes targets, and the words that it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from moses_feature.errors import UsageError
from moses_feature.generation.attention import looked_at
from moses_feature.generation.beam import likeliest
from moses_feature.generation.prefixes import Prefixes
from moses_feature.generation.sampling import draw
from moses_feature.generation.written import Written
from moses_feature.models.any_model import AnyModel
from moses_feature.models.cross_fitting import FOLDS
from moses_feature.models.files import architecture_of
from moses_feature.models.reading import Reading
from moses_feature.models.sizes import SEARCH_ARCHITECTURE
from moses_feature.models.vocabulary import SYMBOLS
from moses_feature.search.prefixes import SearchPrefixes
from moses_feature.search.scorer import SearchScorer
from moses_feature.search.translate import longest_translation

LOG_PROBS_TOGETHER = 1 << 24
"""Log probabilities that are in memory at a time."""

PAIRS_TOGETHER = 256
"""Pairs that attention is computed of at a time."""

Ids = Sequence[int]


@dataclass(frozen=True)
class Generator:
    """A network that writes targets of source phrases, or of sentences.

    Attributes:
        model: whose network it is.
        reading: the direction in which it reads and writes pairs.
        empty: returns empty prefixes for the ids of source phrases.
    """

    model: AnyModel
    reading: Reading
    empty: Callable[[Sequence[Ids]], Prefixes]

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
        """Return the place of the source word that each target word looks at most.

        Args:
            sources: ids of the words of source phrases, which are not empty.
            targets: one of each.

        Returns:
            places, first word first; None if the network looks at none.
        """
        found: list[list[int]] = []
        for first in range(0, len(sources), PAIRS_TOGETHER):
            some = slice(first, first + PAIRS_TOGETHER)
            prefixes = self.empty(sources[some])
            if not isinstance(prefixes, SearchPrefixes):
                return None
            lengths = [len(source) for source in sources[some]]
            found += looked_at(prefixes, lengths, [target.ids for target in targets[some]])
        return [places[::-1] for places in found] if self.reading.right_to_left else found

    def words(self, written: Written) -> list[bytes]:
        """Return the words of a target, first word first; an unknown one is `<unk>`."""
        symbols, shortlist = len(SYMBOLS), self.model.target.shortlist
        words = [
            shortlist[word - symbols] if word >= symbols else SYMBOLS[word] for word in written.ids
        ]
        return words[::-1] if self.reading.right_to_left else words

    def _parts(self, sources: Sequence[Ids], prefixes: int) -> Iterator[Sequence[Ids]]:
        """Yield some source phrases at a time, of which each has so many prefixes at most."""
        together = max(1, LOG_PROBS_TOGETHER // (prefixes * len(self.model.target)))
        for first in range(0, len(sources), together):
            yield sources[first : first + together]


def generator_of(directory: Path) -> Generator:
    """Read a network for phrases, or RNNsearch.

    Raises:
        UsageError: there are several networks, one for each fold.
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    if (directory / FOLDS).is_file():
        raise UsageError(f"{directory} has a network for each fold: name one, such as fold-1 in it")
    if architecture_of(directory) == SEARCH_ARCHITECTURE:
        scorer = SearchScorer(directory)
        return Generator(
            scorer, scorer.reading, lambda ids: SearchPrefixes.empty(scorer.network, ids)
        )
    # torch is not needed by RNNsearch
    from moses_feature.generation.encoder_decoder import PhraseWriter
    from moses_feature.generation.feed_forward import FeedForwardPrefixes
    from moses_feature.models.encoder_decoder import EncoderDecoder
    from moses_feature.models.feed_forward import FeedForwardNetwork
    from moses_feature.models.phrase_model import load_model

    model = load_model(directory)
    network = model.network
    if isinstance(network, FeedForwardNetwork):
        return Generator(model, model.reading, partial(FeedForwardPrefixes.empty, network))
    return Generator(model, model.reading, PhraseWriter(cast(EncoderDecoder, network)).empty)
