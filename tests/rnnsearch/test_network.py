"""RNNsearch against the equations, written again in float64 numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.equations import network_log_probs, random_pairs, search_log_probs
from helpers.models import SEARCH_SIZES, random_model

from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import PhraseModel
from moses_feature.rnnsearch.network import RnnSearch
from moses_feature.rnnsearch.settings import RNNSEARCH_PRESETS, RnnSearchSizes

SMALL = RnnSearchSizes(hidden=5, embedding=3, alignment=7, maxout=2)


@pytest.fixture
def search_model() -> PhraseModel:
    return random_model(SEARCH_SIZES)


def padded(pairs) -> list[torch.Tensor]:
    rows = np.arange(len(pairs))
    sides = (PackedSequences.pack(side) for side in zip(*pairs, strict=True))
    return [torch.from_numpy(array) for side in sides for array in side.padded(rows, END)]


def test_network_follows_the_equations(search_model):
    """Sentences of all lengths in one batch, the empty one too."""
    pairs = [([], [3]), ([2], []), *random_pairs(search_model, 29, 6)]
    found = network_log_probs(search_model.network, pairs)
    for mine, (source, target) in zip(found, pairs, strict=True):
        expected, _ = search_log_probs(search_model, source, target)
        np.testing.assert_allclose(mine, expected, atol=1e-5)


def test_log_norms(search_model):
    """They are what is missing to the logits."""
    pairs = random_pairs(search_model, 7, 5)
    with torch.no_grad():
        log_probs, log_norms = search_model.network(*padded(pairs))
        bias = search_model.network.output_words.bias
        bias += 1.5  # which moves all logits, and no probability
        moved_probs, moved_norms = search_model.network(*padded(pairs))
    torch.testing.assert_close(moved_probs, log_probs, atol=1e-4, rtol=0)
    torch.testing.assert_close(moved_norms, log_norms + 1.5, atol=1e-4, rtol=0)


def test_alignments_follow_the_equations(search_model):
    pairs = random_pairs(search_model, 11, 6)
    source, lengths, target, _ = padded(pairs)
    network = search_model.network
    with torch.no_grad():
        annotations = network.annotations(source, lengths)
        previous = torch.nn.functional.pad(target[:, :-1], (1, 0), value=END)
        _, alignments = network.decode(annotations, lengths, previous.t())
    for row, (x, y) in enumerate(pairs):
        _, expected = search_log_probs(search_model, x, y)
        found = alignments[: len(y) + 1, row, : len(x) + 1].numpy()
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert not alignments[:, row, len(x) + 1 :].any()


def test_gradients_by_finite_differences():
    """Of a loss with log Z in it, in float64, of some components of every parameter."""
    model = random_model(SMALL)
    network = model.network.double()
    tensors = padded(random_pairs(model, 5, 4))
    log_probs, log_norms = network(*tensors)
    (-log_probs.sum() + 0.3 * log_norms.square().sum()).backward()
    generator = np.random.default_rng(1)
    step = 1e-6
    for name, parameter in network.named_parameters():
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        for place in generator.integers(0, len(flat), 4).tolist():
            if name == "target_embedding.weight" and place < 3:
                continue  # END's stays zero
            before = flat[place].item()
            values = []
            for sign in (1, -1):
                flat[place] = before + sign * step
                with torch.no_grad():
                    log_probs, log_norms = network(*tensors)
                    loss = -log_probs.sum() + 0.3 * log_norms.square().sum()
                    values.append(loss.item())
            flat[place] = before
            numeric = (values[0] - values[1]) / (2 * step)
            assert gradient[place].item() == pytest.approx(numeric, rel=1e-4, abs=1e-6), name


@pytest.mark.slow
def test_every_parameter_matters():
    search_model = random_model(SMALL)
    every_word = (
        list(range(1, len(search_model.source))),
        list(range(1, len(search_model.target))),
    )
    pairs = [*random_pairs(search_model, 11, 5), every_word]
    network = search_model.network
    before = np.concatenate(network_log_probs(network, pairs))
    for name, parameter in network.named_parameters():
        flat = parameter.data.view(-1)
        for index in range(len(flat)):
            kept = flat[index].item()
            effect = 0.0
            for change in (5.0, -5.0):  # a maxout unit may win in one direction alone
                flat[index] = kept + change
                after = np.concatenate(network_log_probs(network, pairs))
                effect = max(effect, np.abs(after - before).max())
            flat[index] = kept
            assert effect > 1e-6, f"{name}[{index}] has no effect"


@pytest.mark.slow
@pytest.mark.parametrize("preset", RNNSEARCH_PRESETS)
def test_presets_initialise_as_in_the_paper(preset):
    sizes = RNNSEARCH_PRESETS[preset]
    network = RnnSearch(sizes, 11, 13)
    network.initialise(torch.Generator().manual_seed(2))
    for part in ("forward", "backward", "decoder"):
        for layer in (getattr(network, f"{part}_gates"), getattr(network, f"{part}_candidate")):
            for square in layer.weight.detach().split(sizes.hidden):
                eye = torch.eye(sizes.hidden)
                torch.testing.assert_close(square @ square.t(), eye, atol=1e-4, rtol=0)
    assert network.alignment_state.weight.std().item() == pytest.approx(0.001, rel=0.02)
    assert network.alignment_annotation.weight.std().item() == pytest.approx(0.001, rel=0.02)
    assert not network.alignment_energy.weight.any()
    assert network.decoder_context.weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert not network.decoder_input.bias.any()
    assert not network.target_embedding.weight[END].any()
