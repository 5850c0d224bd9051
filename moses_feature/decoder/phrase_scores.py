"""Scores of target phrases by models that see more than the last words, compiled.

A joint model sees a window of the sentence beside each word, which has a number; a context is this
number and the words before (`moses/LM/BilingualLM.cpp`). A model of trees sees all words before.
"""

from __future__ import annotations

from moses_feature.decoder.lookups import END_OF_SENTENCE, number_with_base, score_word
from moses_feature.decoder.records import Lookups, Options
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import compiler


@compiler(entry=False, counts_references=False)
def score_words(
    lookups: Lookups, options: Options, target: int, state: int, complete: bool
) -> tuple[float, int]:
    """Return the score of a target phrase by a model after a state, and the state then.

    Args:
        lookups: of all models.
        options: the phrase options.
        target: the phrase.
        state: of the model.
        complete: whether the end of the sentence is scored, too.
    """
    total = 0.0
    for place in range(options.word_offsets[target], options.word_offsets[target + 1]):
        score, state = score_word(lookups, state, options.words[place])
        total += score
    if complete:
        score, _ = score_word(lookups, state, END_OF_SENTENCE)
        total += score
    return total, state


@compiler(entry=False, counts_references=False)
def score_beside(
    lookups: Lookups, options: Options, windows: Integers, option: int, start: int, state: int
) -> tuple[float, int]:
    """Return the score of an option's words by a joint model after a state, and the state then.

    Args:
        lookups: of all models.
        options: the phrase options.
        windows: (n,) of the words of the sentence, for this model.
        option: whose target phrase is scored.
        start: first source word of the span.
        state: of the model.
    """
    target = options.target[option]
    first, last = options.word_offsets[target], options.word_offsets[target + 1]
    affiliation = options.affiliation_offsets[option] - first
    total = 0.0
    for place in range(first, last):
        window = windows[start + options.affiliations[affiliation + place]]
        beside = number_with_base(lookups.contexts, state >> 1, window)
        if beside < 0:
            lookups.crowded[0] = 1
            return total, state
        score, state = score_word(lookups, 2 * beside + 1, options.words[place])
        total += score
    return total, state
