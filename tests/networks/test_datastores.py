"""Datastores as a part of p: against the equation in float64, a row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.equations import nearest_neighbours

from moses_feature.networks.datastores import Datastore, Datastores
from moses_feature.networks.word_softmax import WordSoftmax

UNITS, WORDS, T = 13, 17, 1.9


@pytest.mark.parametrize("normalised", [True, False])
def test_the_equation(normalised):
    """Of three sentences one has nothing that is like it; a state is met again exactly."""
    generator = np.random.default_rng(1)
    weight = generator.normal(size=(WORDS, UNITS)).astype(np.float32)
    bias = generator.normal(size=WORDS).astype(np.float32)
    softmax = WordSoftmax(weight, bias, normalised)
    states = [generator.normal(size=(n, UNITS)).astype(np.float32) for n in (40, 0, 7)]
    words = [generator.integers(0, WORDS, len(of)) for of in states]
    of_source = [Datastore(*of, T) for of in zip(states, words, strict=True)]
    source = np.array([0, 2, 0, 1, 2, 2])
    features = generator.normal(size=(len(source), UNITS)).astype(np.float32)
    features[2] = states[0][5]
    datastores = Datastores(of_source, source)
    own, found = softmax.all(features), softmax.all(features, datastores)
    rows, asked = np.divmod(np.arange(len(source) * WORDS), WORDS)
    of_words = softmax.at(features, rows, asked).reshape(own.shape)
    at = softmax.at(features, rows, asked, datastores).reshape(own.shape)
    np.testing.assert_allclose(np.exp(found).sum(1), 1.0, atol=1e-6)
    for row, sentence in enumerate(source.tolist()):
        expected, expected_at = own[row], of_words[row]
        if len(states[sentence]):
            given = features[row].astype(np.float64), states[sentence], words[sentence], T
            expected, expected_at = (
                nearest_neighbours(*given, of) for of in (own[row], of_words[row])
            )
        np.testing.assert_allclose(found[row], expected, atol=1e-4)
        np.testing.assert_allclose(at[row], expected_at, atol=1e-4)
        alone = softmax.all(features[row : row + 1], datastores.of(np.array([row])))
        np.testing.assert_allclose(alone[0], found[row], atol=1e-5)
    assert found[2].argmax() == words[0][5]
    order = generator.permutation(len(rows))
    shuffled = softmax.at(features, rows[order], asked[order], datastores)
    np.testing.assert_allclose(shuffled, at.ravel()[order], atol=1e-5)


def test_words_that_the_network_rules_out():
    """P of 0 in float64 stays the log that it was, but for the network's share."""
    weight = np.zeros((3, 1), dtype=np.float32)
    softmax = WordSoftmax(weight, np.array([0, 800, 0], dtype=np.float32), True)
    features = np.ones((1, 1), dtype=np.float32)
    datastore = Datastore(np.array([[3.0]], dtype=np.float32), np.array([1]), 2.0)
    datastores = Datastores([datastore], np.array([0]))
    expected = -800 + np.log(4 / (4 + 2))
    assert softmax.all(features, datastores)[0, 0] == pytest.approx(expected)
    at = softmax.at(features, np.array([0]), np.array([0]), datastores)
    assert at[0] == pytest.approx(expected)
