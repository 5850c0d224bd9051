"""Translation by RNNsearch alone: beam search for the best mean log p of a word (section 4.3).

Each hypothesis that ends reduces the beam of its sentence by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from moses_feature.networks.vocabulary import END, SYMBOLS, UNKNOWN
from moses_feature.phrases.generation.prefixes import (
    EmptyPrefixes,
    longest_translation,
    search_together,
)
from moses_feature.rnnsearch.inference import EncodedSources, Ids, Inputs, SearchNetwork, States
from moses_feature.rnnsearch.scorer import SearchScorer
from moses_feature.runtime.arrays import Floats, Floats32, Integers


class SearchPrefixes:
    """N prefixes of translations of some sentences.

    Args:
        network: the network.
        sources: the encoded sentences.
        states: the distinct states before the last words.
        state: (N,) the state of each prefix.
        last: (N,) the last words, END for an empty prefix.
    """

    def __init__(
        self,
        network: SearchNetwork,
        sources: EncodedSources,
        states: States,
        state: Integers,
        last: Integers,
    ) -> None:
        self._network = network
        self._sources = sources
        self._states = states
        self._state = state
        self._last = last

    @classmethod
    def empty(cls, network: SearchNetwork, sentences: Sequence[Ids]) -> SearchPrefixes:
        """Return an empty prefix for each sentence, one at least."""
        sources, every = network.encode(sentences), np.arange(len(sentences))
        states = network.align(sources.start, every, sources)
        return cls(network, sources, states, every, np.full(len(sentences), END))

    @cached_property
    def _inputs(self) -> Inputs:
        return Inputs(self._network, self._last)

    @property
    def alignments(self) -> Floats32:
        """(N, longest sentence + 1) alignment of the next word of each prefix.

        Probabilities of the words of its sentence and END; 0 behind END.
        """
        return self._states.alignments[self._state]

    def log_probs(self) -> Floats:
        """Return log p (N, V) of each word, END included, after each prefix."""
        features = self._network.features(self._states, self._state, self._inputs, self._last)
        return self._network.all_log_probs(features)

    def best(self, count: int) -> tuple[Integers, Floats, Floats]:
        """Return the likeliest next words (END excluded), their log p, and log p of END.

        Returns:
            (N, count) words in any order, fewer if the vocabulary is smaller; (N, count) their log
            p; (N,) log p of END.
        """
        log_probs = self.log_probs()
        words = log_probs[:, END + 1 :]
        count = min(count, words.shape[1])
        best = np.argpartition(-words, count - 1, axis=1)[:, :count]
        return best + END + 1, np.take_along_axis(words, best, 1), log_probs[:, END]

    def grown(self, prefix: Integers, word: Integers) -> SearchPrefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""
        going_on, state = np.unique(prefix, return_inverse=True)
        states = self._network.next_states(
            self._states, self._state[going_on], self._inputs, self._last[going_on], self._sources
        )
        return SearchPrefixes(self._network, self._sources, states, state, word)


BEAM = 12


@dataclass(frozen=True)
class AlignedTranslation:
    """A translation, in the order in which the network writes it.

    Attributes:
        ids: its words, without END.
        log_prob: natural log of p(translation | source), END included.
        alignment: (words + 1, source words + 1) for each target word and END, the probabilities of
            the source words and their END.
    """

    ids: tuple[int, ...]
    log_prob: float
    alignment: Floats32

    @property
    def score(self) -> float:
        """The mean of log p over the words and END."""
        return self.log_prob / (len(self.ids) + 1)


@dataclass(frozen=True)
class _Hypothesis:
    """A translation that has not ended."""

    ids: tuple[int, ...]
    log_prob: float
    alignments: tuple[Floats32, ...]


@dataclass
class _BestTranslations:
    """The search for the translations of one sentence; see `BeamSearch`."""

    width: int
    longest: int
    source_words: int
    live: list[_Hypothesis] = field(default_factory=lambda: [_Hypothesis((), 0.0, ())])
    ended: list[AlignedTranslation] = field(default_factory=list)

    def advance(
        self, words: Integers, log_probs: Floats, ends: Floats, alignments: Floats32 | None
    ) -> list[tuple[int, int]]:
        """Extend the hypotheses by the best words; see `BeamSearch`."""
        assert alignments is not None  # noqa: S101  # RNNsearch has them
        before = np.array([hypothesis.log_prob for hypothesis in self.live])[:, None]
        totals = before + np.column_stack([ends, log_probs])
        if len(self.live[0].ids) == self.longest:
            totals[:, 1:] = -np.inf  # the longest length is reached: only END is left
        live, chosen = [], []
        for place in np.argsort(-totals, axis=None, kind="stable")[: self.width].tolist():
            parent, candidate = divmod(place, totals.shape[1])
            if (log_prob := float(totals[parent, candidate])) == -np.inf:
                break
            hypothesis = self.live[parent]
            aligned = (*hypothesis.alignments, alignments[parent, : self.source_words + 1])
            if candidate == 0:
                ids = hypothesis.ids
                self.ended.append(AlignedTranslation(ids, log_prob, np.stack(aligned)))
                self.width -= 1
            else:
                word = int(words[parent, candidate - 1])
                live.append(_Hypothesis((*hypothesis.ids, word), log_prob, aligned))
                chosen.append((parent, word))
        self.live = live
        return chosen


def translate(
    network: SearchNetwork, sentences: Sequence[Sequence[int]], beam: int = BEAM
) -> list[list[AlignedTranslation]]:
    """Return the finished translations of sentences, best first, `beam` at most.

    Args:
        network: the network.
        sentences: ids of source words.
        beam: the beam of a sentence.
    """
    if not sentences:
        return []
    searches = [_BestTranslations(beam, longest_translation(len(s)), len(s)) for s in sentences]
    search_together(SearchPrefixes.empty(network, sentences), searches, beam)
    return [sorted(search.ended, key=lambda t: -t.score) for search in searches]


def words_of(
    scorer: SearchScorer, translation: AlignedTranslation, source: Sequence[bytes]
) -> list[bytes]:
    """Return the words of a translation, first word first.

    An unknown word is replaced by the source word to which it is aligned best.
    """
    words = [
        _copied(translation.alignment[place], source)
        if word == UNKNOWN
        else scorer.target.shortlist[word - len(SYMBOLS)]
        for place, word in enumerate(translation.ids)
    ]
    return words[::-1] if scorer.direction.right_to_left else words


def _copied(alignment: Floats32, source: Sequence[bytes]) -> bytes:
    if not source:
        return SYMBOLS[UNKNOWN]
    return source[int(alignment[: len(source)].argmax())]


def writer(directory: Path) -> tuple[SearchScorer, EmptyPrefixes]:
    """Read RNNsearch; return it with a function that makes empty prefixes of translations."""
    scorer = SearchScorer(directory)
    return scorer, partial(SearchPrefixes.empty, scorer.network)
