"""Scores of target phrases by the language models, without any context."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from moses_feature.decoder.language_model import LanguageModels
from moses_feature.decoder.lookups import Lookups, score_word
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import compiled

TOGETHER = 4096
"""Phrases that are scored before the cache can grow."""


class PhrasesAlone(NamedTuple):
    """Scores of target phrases without any context; natural logs.

    Attributes:
        states: (models, words) the state after each word of the phrases.
        left: (models, words) log p of the words of the phrase behind this one.
        scores: (models, phrases) log p of all words of each phrase.
    """

    states: Integers
    left: Floats
    scores: Floats


def score_without_context(
    models: LanguageModels, plain: int, offsets: Integers, words: Integers
) -> PhrasesAlone:
    """Score target phrases with the first `plain` models; the states are kept for good.

    Models that see the source would say little without it: like Moses, leave them out of the
    estimates.

    Args:
        models: the language models.
        plain: how many of them see target words alone.
        offsets: (phrases + 1,) where the words of each phrase begin.
        words: the words of all phrases.
    """
    phrases = len(offsets) - 1
    found = PhrasesAlone(
        np.empty((plain, len(words)), dtype=np.int64),
        np.empty((plain, len(words))),
        np.empty((plain, phrases)),
    )
    for model in range(plain):
        for first in range(0, phrases, TOGETHER):
            part = offsets, words, first, min(first + TOGETHER, phrases)
            of_model = (array[model] for array in found)
            models.settled(partial(_score_phrases, models.empty[model], *part, *of_model))
    models.keep_states()
    return found


@compiled
def _score_phrases(
    empty: int,
    offsets: Integers,
    words: Integers,
    first: int,
    last: int,
    states: Integers,
    left: Floats,
    alone: Floats,
    lookups: Lookups,
) -> None:
    """Score target phrases with one language model, from the state without any context.

    Args:
        empty: that state.
        offsets: (phrases + 1,) where the words of each phrase begin.
        words: the words of all phrases.
        first: the first phrase to score.
        last: the phrase behind the last one to score.
        states: (words,) receives the state after each word of the phrases.
        left: (words,) receives log p of the words of the phrase behind this one.
        alone: (phrases,) receives log p of all words of each phrase.
        lookups: the language model look-ups.
    """
    for phrase in range(first, last):
        state = empty
        total = 0.0
        for place in range(offsets[phrase], offsets[phrase + 1]):
            score, state = score_word(lookups, state, words[place])
            total += score
            states[place] = state
            left[place] = total
        alone[phrase] = total
        for place in range(offsets[phrase], offsets[phrase + 1]):
            left[place] = total - left[place]
