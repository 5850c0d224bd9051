"""Targets drawn from p(target | source), word after word (section 4.4 of Cho et al. 2014).

Samples of a source phrase with a common prefix share its computation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moses_feature.networks.vocabulary import END
from moses_feature.phrases.generation.prefixes import Prefixes, Written
from moses_feature.runtime.arrays import Floats, Integers


def draw(
    empty: Prefixes,
    sources: Sequence[Sequence[int]],
    longest: Sequence[int],
    samples: int,
    temperature: float = 1.0,
    seed: int = 1,
) -> list[list[Written]]:
    """Return the distinct targets that were drawn for each source phrase, likeliest first.

    The draws for a phrase depend only on the phrase, the seed and the temperature.

    Args:
        empty: an empty prefix for each source phrase.
        sources: the ids of their words.
        longest: the longest target in words, for each source phrase; a longer one is cut there,
            which is likely only for a network that has not learnt to end.
        samples: draws for each source phrase.
        temperature: log probabilities are divided by it; 1 samples the network's distribution.
        seed: seed of the random numbers.
    """
    randoms = [np.random.default_rng([seed, *source]) for source in sources]
    drawn: list[list[Written]] = [[] for _ in sources]
    prefixes = empty
    going_on = [(source, Written((), 0.0, samples)) for source in range(len(sources))]
    while going_on:
        log_probs = prefixes.log_probs()
        parents, words = [], []
        longer: list[tuple[int, Written]] = []
        for row, (source, before) in enumerate(going_on):
            if len(before.ids) == longest[source]:
                found, counts = np.array([END]), np.array([before.count])
            else:
                found, counts = np.unique(
                    _draw(log_probs[row], before.count, temperature, randoms[source]),
                    return_counts=True,
                )
            for word, count in zip(found.tolist(), counts.tolist(), strict=True):
                log_prob = before.log_prob + float(log_probs[row, word])
                if word == END:
                    drawn[source].append(Written(before.ids, log_prob, count))
                else:
                    parents.append(row)
                    words.append(word)
                    longer.append((source, Written((*before.ids, word), log_prob, count)))
        going_on = longer
        if going_on:
            prefixes = prefixes.grown(np.array(parents), np.array(words))
    return [sorted(of_one, key=lambda written: -written.log_prob) for of_one in drawn]


def _draw(
    log_probs: Floats, count: int, temperature: float, random: np.random.Generator
) -> Integers:
    """Draw words, given log p (V,) of each."""
    scaled = log_probs / temperature
    sums = np.cumsum(np.exp(scaled - scaled.max()))
    words: Integers = np.searchsorted(sums, random.random(count) * sums[-1], side="right")
    return np.minimum(words, len(sums) - 1)
