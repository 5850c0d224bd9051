"""The feed-forward network against its equations in float64 numpy, and all that reads it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.equations import feed_forward_log_probs, network_log_probs, random_pairs
from helpers.models import FEED_FORWARD_SIZES, random_model

from moses_feature.networks.phrases import Phrases
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.generation.generator import generator_of
from moses_feature.phrases.model import load_model, save_model
from moses_feature.phrases.packing import pack_ids
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.settings import FEED_FORWARD_PRESETS

CPU = torch.device("cpu")


@pytest.fixture
def model():
    return random_model(FEED_FORWARD_SIZES)


def packed(pairs):
    return pack_ids(*(Phrases.pack(side) for side in zip(*pairs, strict=True)))


def test_network_follows_the_equations(model):
    pairs = random_pairs(model, 29, 7)  # longer than its positions, too
    for found, (source, target) in zip(network_log_probs(model.network, pairs), pairs, strict=True):
        np.testing.assert_allclose(found, feed_forward_log_probs(model, source, target), atol=1e-5)


def test_scorer_follows_the_equations():
    # Rows of products with less than 13 columns depend on their place, with MKL and AVX2.
    model = random_model(replace(FEED_FORWARD_SIZES, rank=17))
    pairs = random_pairs(model, 700, 7)  # more sources than a block has rows
    scorer = scorer_of(model, CPU, threads=2)
    scores = scorer.score_packed(packed(pairs))
    for row in range(0, len(pairs), 13):
        expected = feed_forward_log_probs(model, *pairs[row])
        found = scores.word_log_probs[scores.offsets[row] : scores.offsets[row + 1]]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        alone = scorer.score_packed(packed([pairs[row]]))
        assert alone.log_probs[0] == scores.log_probs[row]


def test_gradients_reach_every_position(model):
    pairs = random_pairs(model, 40, 7)
    sides = [Phrases.pack(side) for side in zip(*pairs, strict=True)]
    tensors = [
        torch.from_numpy(a) for side in sides for a in side.padded(np.arange(len(pairs)), END)
    ]
    log_probs, log_norms = model.network.double()(*tensors)
    (log_probs.sum() + log_norms.square().sum()).backward()
    for name, parameter in model.network.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_begins_with_signals_that_neither_vanish_nor_saturate():
    model = random_model(FEED_FORWARD_PRESETS["small"])
    model.network.initialise(torch.Generator().manual_seed(1))
    features = model.network.features(torch.tensor([[1, 2, 3, END], [3, 4, END, END]]))
    assert 0.01 < features.std().item() < 0.8


def test_model_directory_and_samples(model, tmp_path):
    save_model(tmp_path, model)
    assert load_model(tmp_path).network.sizes == FEED_FORWARD_SIZES
    generator = generator_of(tmp_path)
    sources = [[1, 2], [3], [1, 2, 4]]
    for source, found in zip(sources, generator.likeliest(sources, 6), strict=True):
        for written in found:
            words = [word for word in written.ids if word != END]
            exact = feed_forward_log_probs(model, source, words).sum()
            assert written.log_prob == pytest.approx(exact, abs=1e-4)
        assert len({tuple(written.ids) for written in found}) == len(found)
    drawn = generator.samples(sources, 5)
    assert [len(some) for some in drawn] == [5, 5, 5]
    assert drawn == generator.samples(sources, 5)
