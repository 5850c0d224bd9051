"""States along phrases: those of a plain loop, each prefix once."""

from __future__ import annotations

import numpy as np
import pytest

from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.rnnsearch.inference import states_along


@pytest.mark.parametrize("end", [False, True])
def test_states_are_those_of_a_plain_loop(end):
    generator = np.random.default_rng(4)
    phrases = [generator.integers(1, 4, generator.integers(0, 6)).tolist() for _ in range(60)]
    steps = 0

    def step(word: np.ndarray, state: np.ndarray) -> None:
        nonlocal steps
        steps += len(word)
        state[:] = state * [[0.5, -0.25]] + word[:, None] + 1

    start = np.array([[1, 2]], dtype=np.float32)
    states, row_of = states_along(PackedSequences.pack(phrases), start, step, end)
    expected, prefixes = [], set()
    for phrase in phrases:
        state = start.copy()
        read = [*phrase, END] if end else phrase
        for length, word in enumerate(read, start=1):
            step(np.array([word]), state)
            expected.append(state[0].copy())
            prefixes.add(tuple(read[:length]))
    assert np.array_equal(states[row_of], expected)
    assert len(states) == len(prefixes) == steps - len(expected)
    assert start.tolist() == [[1, 2]]
