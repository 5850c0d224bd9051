"""Scores of target phrases by language models, word by word; compiled.

A joint model sees a window of source words around the affiliation of each target word. Each window
has a number; a context is this number and the target words before (`moses/LM/BilingualLM.cpp`).
"""

from __future__ import annotations

from moses_feature.decoder.contexts import number_with_base
from moses_feature.decoder.lookups import Lookups, score_word
from moses_feature.decoder.options import Options
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.compiled import helper


@helper(inline=False)
def score_words(lookups: Lookups, options: Options, target: int, state: int) -> tuple[float, int]:
    """Return a model's score of a target phrase after a state, and the state after the phrase.

    Args:
        lookups: the language model look-ups.
        options: the phrase options.
        target: the target phrase.
        state: the state of the model.
    """
    total = 0.0
    for place in range(options.word_offsets[target], options.word_offsets[target + 1]):
        score, state = score_word(lookups, state, options.words[place])
        total += score
    return total, state


@helper(inline=False)
def score_beside(
    lookups: Lookups, options: Options, windows: Integers, option: int, start: int, state: int
) -> tuple[float, int]:
    """Return a joint model's score of an option's words after a state, and the next state.

    Args:
        lookups: the language model look-ups.
        options: the phrase options.
        windows: (n,) this model's window numbers for the words of the sentence.
        option: the option whose target phrase is scored.
        start: the first source word of the span.
        state: the state of the model.
    """
    target = options.target[option]
    first, last = options.word_offsets[target], options.word_offsets[target + 1]
    affiliation = options.affiliation_offsets[option] - first
    total = 0.0
    for place in range(first, last):
        window = windows[start + options.affiliations[affiliation + place]]
        beside = number_with_base(lookups.contexts, state >> 1, window)
        if beside < 0:
            lookups.ngrams.crowded[0] = 1
            return total, state
        score, state = score_word(lookups, 2 * beside + 1, options.words[place])
        total += score
    return total, state
