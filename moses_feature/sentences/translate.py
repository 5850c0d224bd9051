"""Translation by a network alone: beam search for the best log p by length (section 4.3).

log p is divided by the length to a power (Wu et al. 2016). Each hypothesis that ends reduces the
beam of its sentence by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from moses_feature.networks.architectures import ARCHITECTURES
from moses_feature.networks.pieces import PieceVocabulary
from moses_feature.networks.vocabulary import SYMBOLS, UNKNOWN
from moses_feature.phrases.generation.prefixes import (
    EmptyPrefixes,
    Prefixes,
    longest_translation,
    search_together,
)
from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.sentences.scorer import Ids, SentenceModel, averaged

BEAM = 12
LENGTH_POWER = 1.4
"""1.3 to 1.5 are best, by 0.2 to 0.4 BLEU on captions; at 1, translations are too short."""


@dataclass(frozen=True)
class AlignedTranslation:
    """A translation, in the order in which the network writes it.

    Attributes:
        ids: its words, without END.
        log_prob: natural log of p(translation | source), END included.
        alignment: (words + 1, source words + 1) for each target word and END, the probabilities of
            the source words and their END; None of a network without alignments.
    """

    ids: tuple[int, ...]
    log_prob: float
    alignment: Floats32 | None

    @property
    def score(self) -> float:
        """`log_prob` over the length, END included, to the power of LENGTH_POWER."""
        score: float = self.log_prob / (len(self.ids) + 1) ** LENGTH_POWER
        return score


@dataclass(frozen=True)
class _Unfinished:
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
    live: list[_Unfinished] = field(default_factory=lambda: [_Unfinished((), 0.0, ())])
    ended: list[AlignedTranslation] = field(default_factory=list)

    def advance(
        self, words: Integers, log_probs: Floats, ends: Floats, alignments: Floats32 | None
    ) -> list[tuple[int, int]]:
        """Extend the hypotheses by the best words; see `BeamSearch`."""
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
            aligned = hypothesis.alignments
            if alignments is not None:
                aligned = (*aligned, alignments[parent, : self.source_words + 1])
            if candidate == 0:
                alignment = np.stack(aligned) if aligned else None
                self.ended.append(AlignedTranslation(hypothesis.ids, log_prob, alignment))
                self.width -= 1
            else:
                word = int(words[parent, candidate - 1])
                live.append(_Unfinished((*hypothesis.ids, word), log_prob, aligned))
                chosen.append((parent, word))
        self.live = live
        return chosen


@np.errstate(over="ignore", invalid="ignore")  # what is no number is refused later
def translate(
    empty: EmptyPrefixes, sentences: Sequence[Ids], beam: int = BEAM
) -> list[list[AlignedTranslation]]:
    """Return the finished translations of sentences, best first, `beam` at most.

    Args:
        empty: makes the network's empty prefixes; see `writer`.
        sentences: ids of source words.
        beam: the beam of a sentence.

    Raises:
        MosesFeatureError: log p is not a number.
    """
    if not sentences:
        return []
    searches = [_BestTranslations(beam, longest_translation(len(s)), len(s)) for s in sentences]
    search_together(empty(sentences), searches, beam)
    if not all(search.ended for search in searches):
        raise MosesFeatureError("expected log p of words, found nan: a network's weights are bad")
    return [sorted(search.ended, key=lambda t: -t.score) for search in searches]


def words_of(
    model: SentenceModel, translation: AlignedTranslation, source: Sequence[bytes]
) -> list[bytes]:
    """Return the words of a translation, first word first.

    An unknown word is replaced by the source word to which it is aligned best. Subwords may be
    bytes; those that make no character of UTF-8 are left out.
    """
    words = model.target.words(translation.ids)
    if isinstance(model.target, PieceVocabulary):
        as_utf8 = (word.decode(errors="ignore").encode() for word in words)
        words = [word for word in as_utf8 if word]
    elif translation.alignment is not None:
        for place, word in enumerate(translation.ids):
            if word == UNKNOWN:
                words[place] = _copied(translation.alignment[place], source)
    return words[::-1] if model.direction.right_to_left else words


def _copied(alignment: Floats32, source: Sequence[bytes]) -> bytes:
    if not source:
        return SYMBOLS[UNKNOWN]
    return source[int(alignment[: len(source)].argmax())]


class EnsemblePrefixes(Prefixes):
    """N prefixes whose next words have the mean probability of several networks; see `Prefixes`."""

    def __init__(self, members: Sequence[Prefixes]) -> None:
        self._members = members

    @property
    def alignments(self) -> Floats32 | None:
        """(N, longest sentence + 1) mean alignment of the next word, None without alignments."""
        found = [aligned for of in self._members if (aligned := of.alignments) is not None]
        return np.mean(found, axis=0) if len(found) == len(self._members) else None

    def log_probs(self) -> Floats:
        """Return log p (N, V) of each word, END included, after each prefix."""
        return averaged([of.log_probs() for of in self._members])

    def grown(self, prefix: Integers, word: Integers) -> EnsemblePrefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""
        return EnsemblePrefixes([of.grown(prefix, word) for of in self._members])


def ensemble(directories: Sequence[Path]) -> tuple[SentenceModel, EmptyPrefixes]:
    """Read networks that write together; return the first, and what makes empty prefixes.

    Raises:
        MosesFeatureError: one cannot be read, or has other words or another direction.
    """
    (model, empty), *others = (writer(directory) for directory in directories)
    for directory, (other, _) in zip(directories[1:], others, strict=True):
        if (other.source, other.target, other.direction) != (
            model.source,
            model.target,
            model.direction,
        ):
            raise MosesFeatureError(
                f"{directory}: expected the words and the direction of {directories[0]}, found "
                "others: networks that translate together learn from the same texts, with the "
                "same --subwords and --subwords-from"
            )
    if not others:
        return model, empty
    of_all = [empty, *(of_other for _, of_other in others)]
    return model, lambda sentences: EnsemblePrefixes([of(sentences) for of in of_all])


def writer(directory: Path) -> tuple[SentenceModel, EmptyPrefixes]:
    """Read a network; return it with a function that makes empty prefixes of translations."""
    model = SentenceModel(directory)
    prefixes = ARCHITECTURES[model.architecture].load("prefixes")
    return model, partial(prefixes.empty, model.network)
