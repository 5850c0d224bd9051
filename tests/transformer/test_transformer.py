"""The Transformer: torch and numpy against the equations; prefixes, beam search, model files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.equations import (
    assert_scored_alone,
    random_pairs,
    transformer_log_probs,
    transformer_scores,
)
from helpers.models import TRANSFORMER_SIZES, random_model

from moses_feature.networks.direction import Direction
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import PhraseModel, load_model, save_model
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.sentences.translate import translate, words_of, writer
from moses_feature.transformer.settings import TransformerSizes


@pytest.fixture
def model() -> PhraseModel:
    return random_model(TRANSFORMER_SIZES, scale=0.4)


@pytest.fixture
def scorer(model, tmp_path: Path) -> SentenceModel:
    save_model(tmp_path / "m", model)
    return SentenceModel(tmp_path / "m")


def _of_torch(model: PhraseModel, pairs, **options) -> tuple[torch.Tensor, ...]:
    sides = (PackedSequences.pack(side) for side in zip(*pairs, strict=True))
    rows = np.arange(len(pairs))
    tensors = [torch.from_numpy(array) for side in sides for array in side.padded(rows, END)]
    return model.network(*tensors, **options)


def test_torch_follows_the_equations(model):
    pairs = [*random_pairs(model, 13, 7), ([], []), ([2, 3], []), ([], [4])]
    expected = [transformer_log_probs(model, *pair) for pair in pairs]
    for network in (model.network.train(), model.network.eval()):
        with torch.no_grad():
            found, _ = _of_torch(replace(model, network=network), pairs)
        np.testing.assert_allclose(found.numpy(), np.concatenate(expected), atol=2e-5)


def test_numpy_follows_the_equations(model, scorer):
    """Of many pairs at once: sources that are the same, and prefixes that are; empty ones."""
    pairs = random_pairs(model, 79, 7)
    pairs += [(pairs[0][0], target) for _, target in pairs] + [([], []), ([2, 3], [])]
    found = scorer.word_log_probs(pairs)
    for of_words, (source, target) in zip(found, pairs, strict=True):
        expected = transformer_log_probs(model, source, target)
        np.testing.assert_allclose(of_words, expected, atol=2e-5)


def test_the_alignments_that_links_guide(model):
    """The first head of the last layer, of words and of END."""
    pairs = [([2, 3, 4], [5, 6]), ([2, 3], [5, 7, 3, 4]), ([8], [])]
    links = np.array([[0, 0, 2], [0, 1, 0], [0, 2, 3], [1, 4, 2], [1, 3, 0], [2, 0, 1]])
    with torch.no_grad():
        *_, found = _of_torch(model, pairs, links=torch.from_numpy(links.T))
    for (pair, written, read), log_prob in zip(links, found, strict=True):
        shares = transformer_scores(model, *pairs[pair])[1]
        assert log_prob.item() == pytest.approx(np.log(shares[written, read]), abs=1e-5)


def test_a_score_does_not_depend_on_the_pairs_beside_it(model, scorer):
    assert_scored_alone(scorer, random_pairs(model, 61, 9))


def test_smoothed_labels(model):
    """The mean over the vocabulary is that of log p of each word."""
    pairs = random_pairs(model, 5, 6)
    with torch.no_grad():
        log_probs, _, means = _of_torch(model, pairs, smooth=True)
        of_all = [
            _of_torch(model, [(source, [*target[:place], word])])[0][place]
            for source, target in pairs
            for place in range(len(target) + 1)
            for word in range(1, len(model.target))
        ]
    words = len(model.target)
    others = torch.stack(of_all).reshape(-1, words - 1).exp()
    ends = 1 - others.sum(1, keepdim=True)
    expected = torch.cat([ends, others], 1).log().mean(1)
    np.testing.assert_allclose(means.numpy(), expected.numpy(), atol=1e-3)
    assert len(means) == len(log_probs)


def test_gradients_are_finite_differences(model):
    pairs = random_pairs(model, 3, 5)
    network = model.network.double()
    found, _ = _of_torch(model, pairs)
    found.sum().backward()
    generator = torch.Generator().manual_seed(5)
    for name, parameter in network.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        values = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                parameter += step * direction
                values.append(_of_torch(model, pairs)[0].double().sum().item())
                parameter -= step * direction
        slope = (values[0] - values[1]) / 2e-5
        assert (parameter.grad * direction).sum().item() == pytest.approx(slope, abs=2e-3), name


def test_beam_search_finds_what_scoring_says(scorer, tmp_path):
    model, empty = writer(tmp_path / "m")
    sources = [[2, 3, 4], [5], [2, 2, 2, 2, 2]]
    for source, found in zip(sources, translate(empty, sources, 4), strict=True):
        for translation in found:
            assert translation.alignment is None
            expected = scorer.log_probs([(source, list(translation.ids))])[0]
            assert translation.log_prob == pytest.approx(expected, abs=1e-4)
        assert words_of(model, found[0], []) == model.target.words(found[0].ids)


def test_a_beam_of_one_is_greedy(model, tmp_path):
    save_model(tmp_path / "m", model)
    _, empty = writer(tmp_path / "m")
    ((translation,),) = translate(empty, [[2, 3, 4]], 1)
    prefixes = empty([[2, 3, 4]])
    for word in [*translation.ids, END]:
        assert prefixes.log_probs()[0].argmax() == word or len(translation.ids) == 16
        prefixes = prefixes.grown(np.array([0]), np.array([word]))


def test_directions_are_kept(tmp_path):
    model = random_model(TRANSFORMER_SIZES, direction=Direction(reverse=True, right_to_left=True))
    save_model(tmp_path / "m", model)
    assert SentenceModel(tmp_path / "m").direction == load_model(tmp_path / "m").direction
    assert model.direction == SentenceModel(tmp_path / "m").direction


def test_heads_share_the_units():
    with pytest.raises(ValueError, match="units: expected a multiple of 2 x 4 heads"):
        TransformerSizes(units=12, heads=4, inner=8, encoder_layers=1, decoder_layers=1)
