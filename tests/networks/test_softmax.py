"""The softmax against automatic differentiation; the sampled one, and its expectation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.models import SEARCH_SIZES, SIZES, random_model

from moses_feature.networks import softmax
from moses_feature.networks.softmax import word_terms
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_sample import (
    WordSampler,
    inclusion_probabilities,
    sampled_log_probs,
)

CPU = torch.device("cpu")
COUNTS = np.array([0, 500, 1, 0, 90, 20, 20, 3, 7, 1, 1000, 2])
ROWS, RANK = 6, 5


def drawn(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


GIVEN = drawn(ROWS, RANK), drawn(len(COUNTS), RANK), drawn(len(COUNTS))
WORDS = torch.tensor([0, 10, 3, 3, 7, 11])


def layer(weight: torch.Tensor, bias: torch.Tensor) -> torch.nn.Linear:
    """A layer of the logits with these weights, which are its parameters."""
    output = torch.nn.Linear(*reversed(weight.shape), dtype=weight.dtype)
    output.weight, output.bias = (torch.nn.Parameter(of.detach()) for of in (weight, bias))
    return output


@pytest.mark.parametrize("together", [2, 1024])
def test_terms_and_their_gradients(together, monkeypatch):
    monkeypatch.setattr("moses_feature.networks.softmax.WORDS_TOGETHER", together)
    features, output = GIVEN[0], layer(*GIVEN[1:])
    logits = output(features)
    log_probs = torch.log_softmax(logits, 1)
    expected = log_probs[range(ROWS), WORDS], torch.logsumexp(logits, 1), log_probs.mean(1)
    inputs = features, output.weight, output.bias
    for used in ([0], [1], [2], [0, 2], [0, 1, 2]):
        found = word_terms(features, output, WORDS, smooth=True)
        torch.testing.assert_close(found, expected)
        shares = [drawn(ROWS).detach() * (term + 1) for term in used]
        sums = [
            sum((terms[term] * share).sum() for term, share in zip(used, shares, strict=True))
            for terms in (found, expected)
        ]
        gradients = [torch.autograd.grad(of, inputs, retain_graph=True) for of in sums]
        torch.testing.assert_close(*gradients)


def test_terms_of_short_products():
    """Under autocast its type is that of the products, whatever that of the features."""
    features, output = GIVEN[0].detach().float().requires_grad_(), layer(*GIVEN[1:]).float()
    expected = word_terms(features, output, WORDS, smooth=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = word_terms(features, output, WORDS, smooth=True)
    short = word_terms(features.bfloat16(), output, WORDS, smooth=True)
    assert all(map(torch.equal, found, short))
    for of, exact in zip(found, expected, strict=True):
        assert of.dtype == torch.float32
        torch.testing.assert_close(of, exact, atol=0.1, rtol=0.02)
        assert not torch.equal(of, exact)
    (gradient,) = torch.autograd.grad(found[0].sum(), features)
    assert gradient.dtype == torch.float32


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_terms_and_gradients(dtype, threads, monkeypatch):
    """They are those of array operations; a large and a small logit are among them."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(softmax, "FEWEST_ROWS", 1)
    weight, bias = GIVEN[1].detach(), GIVEN[2].detach().clone()
    bias[7], bias[4] = 90, -200
    found = []
    for compiled in (softmax.COMPILED, {}):
        monkeypatch.setattr(softmax, "COMPILED", compiled)
        features = GIVEN[0].detach().to(dtype).requires_grad_()
        output = layer(weight, bias).float()
        terms = word_terms(features, output, WORDS, smooth=True)
        shares = [drawn(ROWS).detach().float() * (n + 1) for n in range(len(terms))]
        summed = sum((of * share).sum() for of, share in zip(terms, shares, strict=True))
        gradients = torch.autograd.grad(summed, (features, output.weight, output.bias))
        found.append((*terms, *gradients))
    ours, expected = found
    torch.testing.assert_close(ours[:3], expected[:3])
    close = {} if dtype == torch.float32 else {"atol": 0.05, "rtol": 0.02}
    torch.testing.assert_close(ours[3:], expected[3:], **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_there_is_one_gradient(dtype):
    features = GIVEN[0].detach().to(dtype).requires_grad_()
    log_probs, _ = word_terms(features, layer(*GIVEN[1:]).to(dtype), WORDS)
    log_probs.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        log_probs.sum().backward()


def test_a_number_that_is_none_stays_one():
    features = torch.tensor([[1.0, 2.0], [torch.nan, 1.0], [torch.inf, 1.0]])
    log_probs, log_norms = word_terms(features, torch.nn.Linear(2, 20), WORDS[:3])
    assert log_probs[0].isfinite()
    assert not log_probs[1:].isfinite().any()
    assert log_norms[0].isfinite()


def test_probabilities_to_be_in_a_sample():
    q = inclusion_probabilities(COUNTS, 6)
    assert q.sum() == pytest.approx(6)
    assert q[END] == q[10] == q[1] == 1
    assert (q > 0).all()
    assert np.array_equal(
        np.argsort(q[2:10], kind="stable"), np.argsort(COUNTS[2:10], kind="stable")
    )
    assert (inclusion_probabilities(COUNTS, 1)[1:] < 1).all()
    assert (inclusion_probabilities(COUNTS, 12) == 1).all()


def test_samples_are_as_frequent_as_said():
    sampler = WordSampler(COUNTS, 6, 1, CPU)
    counted = np.zeros(len(COUNTS))
    for update in range(4000):
        counted[sampler.sample(update).words] += 1
    np.testing.assert_allclose(counted / 4000, inclusion_probabilities(COUNTS, 6), atol=0.03)
    again = WordSampler(COUNTS, 6, 1, CPU).sample(7)
    assert torch.equal(again.words, sampler.sample(7).words)


def test_all_words_as_the_sample():
    sample = WordSampler(COUNTS, len(COUNTS), 1, CPU).sample(0)
    found, log_z = sampled_log_probs(*GIVEN, WORDS, sample)
    log_probs = torch.log_softmax(GIVEN[0] @ GIVEN[1].t() + GIVEN[2], 1)
    expected = log_probs[range(ROWS), WORDS]
    torch.testing.assert_close(found, expected)
    logits = GIVEN[0] @ GIVEN[1].t() + GIVEN[2]
    torch.testing.assert_close(log_z, torch.logsumexp(logits, 1))
    gradients = [torch.autograd.grad(p.sum(), GIVEN) for p in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_the_sum_is_right_on_average():
    sampler = WordSampler(COUNTS, 6, 1, CPU)
    given = [tensor.detach() * 0.5 for tensor in GIVEN]
    sums = np.mean(
        [
            sampled_log_probs(*given, WORDS, sampler.sample(update))[1].exp().numpy()
            for update in range(20_000)
        ],
        axis=0,
    )
    exact = torch.exp(given[0] @ given[1].t() + given[2]).sum(1).numpy()
    np.testing.assert_allclose(sums, exact, rtol=0.03)


@pytest.mark.parametrize("sizes", [SIZES, SEARCH_SIZES])
def test_every_network_takes_a_sample(sizes):
    model = random_model(sizes)
    sides = torch.tensor([[1, 2, END], [3, END, END]]), torch.tensor([2, 1])
    words = len(model.target)
    whole = WordSampler(np.ones(words, dtype=np.int64), words, 1, CPU).sample(0)
    exact = model.network(*sides, *sides)
    torch.testing.assert_close(model.network(*sides, *sides, whole), exact)
    part = WordSampler(np.ones(words, dtype=np.int64), 4, 1, CPU).sample(0)
    assert not torch.allclose(model.network(*sides, *sides, part)[1], exact[1])
