"""Translation by RNNsearch alone: beam search for the best average log p of a word (section 4.3).

When a hypothesis ends, its sentence goes on with a beam that is smaller by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from moses_feature.arrays import Floats, Floats32, Integers
from moses_feature.models.vocabulary import END, SYMBOLS, UNKNOWN
from moses_feature.scoring.search_network import SearchNetwork
from moses_feature.search.prefixes import SearchPrefixes
from moses_feature.search.scorer import SearchScorer

BEAM = 12
WORDS_PER_SOURCE_WORD = 2
MORE_WORDS = 10
"""A translation has at most this many words, and so many for each source word."""


@dataclass(frozen=True)
class Translation:
    """A translation, as the network writes it.

    Attributes:
        ids: of its words, END not included.
        log_prob: natural log of p(translation | source), END included.
        alignment: (words + 1, source words + 1) for each target word and END the probabilities of
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
    ended: list[Translation] = field(default_factory=list)

    def advance(self, log_probs: Floats, alignments: Floats32) -> tuple[list[int], list[int]]:
        """Go on with the best words; return the hypotheses that they follow, and the words.

        Args:
            log_probs: (live, V) of all words after each hypothesis.
            alignments: (live, source words + 1).
        """
        total = np.array([hypothesis.log_prob for hypothesis in self.live])[:, None] + log_probs
        if len(self.live[0].ids) == self.longest:
            total[:, END + 1 :] = -np.inf  # time to end
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
                self.ended.append(Translation(before.ids, log_prob, np.stack(aligned)))
                self.width -= 1
            else:
                live.append(_Hypothesis((*before.ids, word), log_prob, aligned))
                parents.append(parent)
                words.append(word)
        self.live = live
        return parents, words


def translate(
    network: SearchNetwork, sentences: Sequence[Sequence[int]], beam: int = BEAM
) -> list[list[Translation]]:
    """Return translations of sentences, best first: as many as ended, `beam` at most.

    Args:
        network: that translates.
        sentences: ids of source words.
        beam: hypotheses of a sentence.
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


def longest_translation(source_words: int) -> int:
    """Return how many words a translation has at most."""
    return MORE_WORDS + WORDS_PER_SOURCE_WORD * source_words


def words_of(
    scorer: SearchScorer, translation: Translation, source: Sequence[bytes]
) -> list[bytes]:
    """Return the words of a translation, first word first.

    In the place of an unknown word comes the source word that it is aligned to most.
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
    """Return the places of the largest scores, largest first; of equal ones the first."""
    flat = scores.ravel()
    if count < len(flat):
        least = np.partition(flat, len(flat) - count)[len(flat) - count]
        places = np.flatnonzero(flat >= least)
    else:
        places = np.arange(len(flat))
    best: Integers = places[np.argsort(-flat[places], kind="stable")][:count]
    return best
