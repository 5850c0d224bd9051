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
from moses_feature.phrases.generation.prefixes import EmptyPrefixes, longest_translation
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
class _Beam:
    """The search for the translation of one sentence."""

    width: int
    longest: int
    source_words: int
    live: list[_Hypothesis]
    ended: list[AlignedTranslation] = field(default_factory=list)

    def advance(self, log_probs: Floats, alignments: Floats32) -> tuple[list[int], list[int]]:
        """Extend the hypotheses by the best words; return the hypothesis and the word of each.

        Args:
            log_probs: (live, V) of all words after each hypothesis.
            alignments: (live, source words + 1).
        """
        total = np.array([hypothesis.log_prob for hypothesis in self.live])[:, None] + log_probs
        if len(self.live[0].ids) == self.longest:
            total[:, END + 1 :] = -np.inf  # the longest length is reached: only END is left
        best = _best(total, self.width)
        live, parents, words = [], [], []
        for place in best.tolist():
            parent, word = divmod(place, total.shape[1])
            if total[parent, word] == -np.inf:
                continue
            before = self.live[parent]
            aligned = (*before.alignments, alignments[parent])
            log_prob = float(total[parent, word])
            if word == END:
                self.ended.append(AlignedTranslation(before.ids, log_prob, np.stack(aligned)))
                self.width -= 1
            else:
                live.append(_Hypothesis((*before.ids, word), log_prob, aligned))
                parents.append(parent)
                words.append(word)
        self.live = live
        return parents, words


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
    beams = [
        _Beam(beam, longest_translation(len(s)), len(s), [_Hypothesis((), 0.0, ())])
        for s in sentences
    ]
    prefixes = SearchPrefixes.empty(network, sentences)
    owner = np.arange(len(sentences))  # the sentence of each hypothesis, ascending
    while len(owner):
        log_probs, alignments = prefixes.log_probs(), prefixes.alignments
        parents, words, owners = [], [], []
        bounds = np.flatnonzero(np.diff(owner, prepend=-1))
        for first, end in zip(bounds.tolist(), [*bounds[1:].tolist(), len(owner)], strict=True):
            search = beams[owner[first]]
            aligned = alignments[first:end, : search.source_words + 1]
            mine, next_words = search.advance(log_probs[first:end], aligned)
            parents += [first + parent for parent in mine]
            words += next_words
            owners += [owner[first]] * len(mine)
        owner = np.array(owners, dtype=np.int64)
        if len(owner):
            prefixes = prefixes.grown(np.array(parents), np.array(words))
    return [sorted(search.ended, key=lambda t: -t.score) for search in beams]


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
    return words[::-1] if scorer.reading.right_to_left else words


def _copied(alignment: Floats32, source: Sequence[bytes]) -> bytes:
    if not source:
        return SYMBOLS[UNKNOWN]
    return source[int(alignment[: len(source)].argmax())]


def _best(scores: Floats, count: int) -> Integers:
    """Return the places of the largest scores, largest first, and the first of equal ones first."""
    flat = scores.ravel()
    if count < len(flat):
        least = np.partition(flat, len(flat) - count)[len(flat) - count]
        places = np.flatnonzero(flat >= least)
    else:
        places = np.arange(len(flat))
    best: Integers = places[np.argsort(-flat[places], kind="stable")][:count]
    return best


def writer(directory: Path) -> tuple[SearchScorer, EmptyPrefixes]:
    """Read RNNsearch; return it with a function that makes empty prefixes of translations."""
    scorer = SearchScorer(directory)
    return scorer, partial(SearchPrefixes.empty, scorer.network)
