"""What is remembered as a part of p: against the equation in float64, a row at a time."""

from __future__ import annotations

import numpy as np
import pytest

from moses_feature.networks.recall import LEAST, Recall, Remembered
from moses_feature.networks.word_softmax import WordSoftmax
from moses_feature.runtime.arrays import Floats

UNITS, WORDS, T = 13, 17, 1.9


def plain(features: Floats, states: Floats, words: Floats, log_probs: Floats) -> Floats:
    """The equation of the module, for a row (D,) and log p (V,) of the network."""
    distances = np.maximum(((states - features) ** 2).sum(1), float(LEAST))
    weights = np.exp(-(distances - distances.min()) / T)
    of_memory = np.array([weights[words == word].sum() for word in range(WORDS)]) / weights.sum()
    share = T / (T + distances.min())
    return np.log(share * of_memory + (1 - share) * np.exp(log_probs))


@pytest.fixture
def softmax() -> WordSoftmax:
    generator = np.random.default_rng(3)
    weight = generator.normal(size=(WORDS, UNITS)).astype(np.float32)
    return WordSoftmax(weight, generator.normal(size=WORDS).astype(np.float32), True)


def test_the_equation(softmax):
    """Of three sentences one has nothing that is like it; a state is met again exactly."""
    generator = np.random.default_rng(1)
    states = [generator.normal(size=(n, UNITS)).astype(np.float32) for n in (40, 0, 7)]
    words = [generator.integers(0, WORDS, len(of)) for of in states]
    remembered = [Remembered(*of, T) for of in zip(states, words, strict=True)]
    source = np.array([0, 2, 0, 1, 2, 2])
    features = generator.normal(size=(len(source), UNITS)).astype(np.float32)
    features[2] = states[0][5]
    recall = Recall(remembered, source)
    own, found = softmax.all(features), softmax.all(features, recall)
    np.testing.assert_allclose(np.exp(found).sum(1), 1.0, atol=1e-6)
    for row, sentence in enumerate(source.tolist()):
        expected = own[row]
        if len(states[sentence]):
            given = features[row].astype(np.float64), states[sentence], words[sentence]
            expected = plain(*given, own[row])
        np.testing.assert_allclose(found[row], expected, atol=1e-4)
        alone = softmax.all(features[row : row + 1], recall.of(np.array([row])))
        assert np.array_equal(alone[0], found[row])
    assert found[2].argmax() == words[0][5]
    rows, asked = generator.integers(0, len(source), 60), generator.integers(0, WORDS, 60)
    at = softmax.at(features, rows, asked, recall)
    np.testing.assert_allclose(at, found[rows, asked], atol=1e-5)
