"""The network against the equations, written again in float64 numpy."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.equations import network_log_probs, random_pairs, reference_log_probs
from helpers.models import SIZES, random_model

from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.encoder_decoder import EncoderDecoder
from moses_feature.phrases.model import PhraseModel
from moses_feature.phrases.packing import pack_ids
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.settings import PRESETS, PRODUCTS


@pytest.fixture(params=PRODUCTS)
def model(request):
    return random_model(replace(SIZES, unit=request.param))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_scores_in_both_types(model, dtype):
    pairs = random_pairs(model, 29, 6)
    packed = pack_ids(*(PackedSequences.pack(side) for side in zip(*pairs, strict=True)))
    scores = scorer_of(model, torch.device("cpu"), dtype).score_packed(packed)
    exact = [reference_log_probs(model, source, target).sum() for source, target in pairs]
    error = np.abs(scores.log_probs - exact)
    assert error.max() < (1e-5 if dtype == "float32" else 0.03 * np.abs(exact).max())


def test_network_follows_the_equations(model):
    pairs = random_pairs(model, 29, 6)
    for found, (source, target) in zip(network_log_probs(model.network, pairs), pairs, strict=True):
        np.testing.assert_allclose(found, reference_log_probs(model, source, target), atol=1e-5)


def test_scorer_follows_the_equations(model):
    pairs = random_pairs(model, 29, 6)
    packed = pack_ids(*(PackedSequences.pack(side) for side in zip(*pairs, strict=True)))
    scores = scorer_of(model, torch.device("cpu")).score_packed(packed)
    for row, (source, target) in enumerate(pairs):
        expected = reference_log_probs(model, source, target)
        found = scores.word_log_probs[scores.offsets[row] : scores.offsets[row + 1]]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert scores.log_probs[row] == pytest.approx(expected.sum(), abs=1e-5)


@pytest.mark.slow
def test_every_parameter_matters(model):
    every_word = [(list(range(1, len(model.source))), list(range(1, len(model.target))))]
    pairs = [*random_pairs(model, 11, 5), *every_word]
    before = np.concatenate(network_log_probs(model.network, pairs))
    for name, parameter in model.network.named_parameters():
        flat = parameter.data.view(-1)
        for index in range(len(flat)):
            kept = flat[index].item()
            effect = 0.0
            for change in (5.0, -5.0, 50.0, -50.0):  # a maxout unit may win in one direction alone
                flat[index] = kept + change
                after = np.concatenate(network_log_probs(model.network, pairs))
                effect = max(effect, np.abs(after - before).max())
            flat[index] = kept
            assert effect > 1e-6, f"{name}[{index}] has no effect"


def test_probabilities_sum_to_one():
    """All targets up to length L, and what is left for longer ones, make up the whole."""
    model = random_model(seed=5, scale=1.0)
    scorer = scorer_of(model, torch.device("cpu"))
    words = range(1, 5)
    small = PhraseModel(
        EncoderDecoder(model.network.sizes, len(model.source), 5),
        model.source,
        type(model.target)(model.target.shortlist[:3]),
        model.words,
        {},
        escaped=False,
    )
    small.network.load_state_dict(
        {
            name: tensor[:5] if name.startswith(("target_embedding", "output_words")) else tensor
            for name, tensor in model.network.state_dict().items()
        }
    )
    scorer = scorer_of(small, torch.device("cpu"))
    longest = 3
    phrases = [list(p) for n in range(longest + 1) for p in itertools.product(words, repeat=n)]
    source = PackedSequences.pack([[2, 3]] * len(phrases))
    scores = scorer.score_packed(pack_ids(source, PackedSequences.pack(phrases)))
    total = np.exp(scores.log_probs).sum()
    longer = 0.0  # probability of having written L words and not the end
    for row, phrase in enumerate(phrases):
        if len(phrase) == longest:
            of_words = scores.word_log_probs[scores.offsets[row] : scores.offsets[row + 1]]
            longer += np.exp(of_words[:-1].sum()) * (1 - np.exp(of_words[-1]))
    assert total < 1
    assert total + longer == pytest.approx(1, abs=1e-5)


def test_units_begin_as_in_the_literature():
    generator = torch.Generator().manual_seed(2)
    networks = {}
    for unit in PRODUCTS:
        networks[unit] = EncoderDecoder(replace(PRESETS["small"], unit=unit), 11, 13)
        networks[unit].initialise(generator)
    assert networks["lstm"].decoder_input.bias.view(4, -1).mean(1).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_initialise_as_in_the_paper(preset):
    network = EncoderDecoder(PRESETS[preset], 11, 13)
    network.initialise(torch.Generator().manual_seed(2))
    hidden = PRESETS[preset].hidden
    for layer in (network.encoder_gates, network.encoder_candidate, network.decoder_state):
        for square in layer.weight.detach().split(hidden):
            torch.testing.assert_close(square @ square.t(), torch.eye(hidden), atol=1e-4, rtol=0)
    assert network.summary.weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert not network.summary.bias.any()
    assert not network.target_embedding.weight[END].any()
    assert network.target_embedding.weight[1:].std().item() == pytest.approx(0.01, rel=0.2)
