"""The recurrences and the softmax of training: values and gradients against plain loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from moses_feature.networks.recurrence import decoder_states, encoder_states, unit_states

WORDS, ROWS, HIDDEN = 4, 3, 5


def normal(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()


def plain_encoder_states(inputs: Tensor, gates: Tensor, candidate: Tensor) -> Tensor:
    """Write the equations word by word, for automatic differentiation."""
    state = inputs.new_zeros(inputs.shape[1], len(candidate))
    states = []
    for step in inputs:
        i_z, i_r, i = step.chunk(3, 1)
        u_z, u_r = (state @ gates.t()).chunk(2, 1)
        z, r = torch.sigmoid(i_z + u_z), torch.sigmoid(i_r + u_r)
        new = torch.tanh(i + (r * state) @ candidate.t())
        state = z * state + (1 - z) * new
        states.append(state)
    return torch.stack(states)


def plain_decoder_states(inputs: Tensor, start: Tensor, summary: Tensor, weight: Tensor) -> Tensor:
    """Write the equations word by word, for automatic differentiation."""
    state = start
    states = []
    for step in inputs:
        i_z, i_r, i = step.chunk(3, 1)
        u_z, u_r, u = (state @ weight.t() + summary).chunk(3, 1)
        z, r = torch.sigmoid(i_z + u_z), torch.sigmoid(i_r + u_r)
        state = z * state + (1 - z) * torch.tanh(i + r * u)
        states.append(state)
    return torch.stack(states)


def plain_tanh_states(inputs: Tensor, start: Tensor, summary: Tensor, weight: Tensor) -> Tensor:
    """Write the equations word by word, for automatic differentiation."""
    state, states = start, []
    for step in inputs:
        state = torch.tanh(step + state @ weight.t() + summary)
        states.append(state)
    return torch.stack(states)


def plain_lstm_states(inputs: Tensor, start: Tensor, summary: Tensor, weight: Tensor) -> Tensor:
    """Write the equations word by word, for automatic differentiation."""
    units, memory = start.chunk(2, 1)
    states = []
    for step in inputs:
        products = (step + units @ weight.t() + summary).chunk(4, 1)
        take, keep, show = (torch.sigmoid(product) for product in products[:3])
        memory = keep * memory + take * torch.tanh(products[3])
        units = show * torch.tanh(memory)
        states.append(torch.cat([units, memory], 1))
    return torch.stack(states)


ENCODER = (normal(WORDS, ROWS, 3 * HIDDEN), normal(2 * HIDDEN, HIDDEN), normal(HIDDEN, HIDDEN))
DECODER = (
    normal(WORDS, ROWS, 3 * HIDDEN),
    normal(ROWS, HIDDEN),
    normal(ROWS, 3 * HIDDEN),
    normal(3 * HIDDEN, HIDDEN),
)
TANH = (
    normal(WORDS, ROWS, HIDDEN),
    normal(ROWS, HIDDEN),
    normal(ROWS, HIDDEN),
    normal(HIDDEN, HIDDEN),
)
LSTM = (
    normal(WORDS, ROWS, 4 * HIDDEN),
    normal(ROWS, 2 * HIDDEN),
    normal(ROWS, 4 * HIDDEN),
    normal(4 * HIDDEN, HIDDEN),
)
CASES = [
    (unit_states, plain_tanh_states, TANH),
    (unit_states, plain_lstm_states, LSTM),
    (encoder_states, plain_encoder_states, ENCODER),
    (decoder_states, plain_decoder_states, DECODER),
]


@pytest.mark.parametrize(("states", "plain", "arguments"), CASES)
def test_states_and_gradients(states, plain, arguments):
    found, expected = states(*arguments), plain(*arguments)
    torch.testing.assert_close(found, expected)
    weights = normal(*found.shape).detach()
    gradients = [torch.autograd.grad((s * weights).sum(), arguments) for s in (found, expected)]
    torch.testing.assert_close(*gradients)
    assert torch.autograd.gradcheck(states, arguments)


@pytest.mark.parametrize(("states", "plain", "arguments"), CASES)
def test_short_products(states, plain, arguments):
    """As under autocast: the inputs in bfloat16, the weights not; states in float32."""
    short = [arguments[0].detach().bfloat16(), *(a.detach().float() for a in arguments[1:])]
    short = [a.requires_grad_() for a in short]
    found, expected = states(*short), plain(*arguments)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected.float(), atol=0.05, rtol=0.05)
    gradients = torch.autograd.grad(found.sum(), short)
    assert [g.dtype for g in gradients] == [a.dtype for a in short]
    for gradient, exact in zip(
        gradients, torch.autograd.grad(expected.sum(), arguments), strict=True
    ):
        error = (gradient - exact).norm() / exact.norm()
        assert error < 0.03


def test_padding_comes_after():
    """A phrase alone has the states that it has beside longer ones: the padding comes after it."""
    whole = encoder_states(*ENCODER)
    start = encoder_states(ENCODER[0][:2], *ENCODER[1:])
    torch.testing.assert_close(whole[:2], start)
