"""Attention on a CPU, against PyTorch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from moses_feature.transformer.layers import Attention, causal_mask, padding_mask

NOTHING = torch.zeros(())
UNITS, HEADS, PAIRS, READ = 12, 3, 4, 7
PADDING = torch.arange(READ) > torch.tensor([6, 2, 4, 0])[:, None]
CAUSAL = nn.Transformer.generate_square_subsequent_mask(READ, dtype=torch.double)


@pytest.mark.parametrize("of_itself", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (torch.zeros(()), {}),
        (padding_mask(PADDING, HEADS), {"key_padding_mask": PADDING}),
        (causal_mask(READ, torch.device("cpu")), {"attn_mask": CAUSAL}),
    ],
)
def test_means_and_gradients(ours, theirs, of_itself):
    torch.manual_seed(1)
    attention = Attention(UNITS, HEADS).double()
    plain = nn.MultiheadAttention(UNITS, HEADS, batch_first=True).double()
    plain.load_state_dict(attention.state_dict())
    with torch.no_grad():
        for parameter in (*attention.parameters(), *plain.parameters()):
            parameter.copy_(torch.sin(torch.arange(parameter.numel())).view_as(parameter))
    read = torch.randn(PAIRS, READ, UNITS, dtype=torch.double, requires_grad=True)
    written = read if of_itself else torch.randn(PAIRS, READ, UNITS, dtype=torch.double)
    found = attention(written, read, ours)
    expected, _ = plain(written, read, read, need_weights=False, **theirs)
    torch.testing.assert_close(found, expected)
    gradients = (
        torch.autograd.grad(of.square().sum(), (read, *network.parameters()))
        for of, network in ((found, attention), (expected, plain))
    )
    torch.testing.assert_close(*gradients)


def test_the_bias_of_keys_is_not_learnt():
    torch.manual_seed(1)
    attention, rows = Attention(UNITS, HEADS), torch.randn(PAIRS, READ, UNITS)
    for query in (rows, rows[:, :3]):
        attention.zero_grad()
        attention(query, rows, NOTHING).square().sum().backward()
        of_queries, of_keys, of_values = attention.in_proj_bias.grad.chunk(3)
        assert not of_keys.any()
        assert of_queries.all()
        assert of_values.all()


def test_what_is_added_to_all_energies_does_not_hide_their_differences():
    """Energies of 1,024, 1,026 and 1,028: bfloat16 has every eighth number there."""
    attention = Attention(4, 1)
    with torch.no_grad():
        attention.in_proj_weight.copy_(torch.eye(4).repeat(3, 1))
        attention.in_proj_bias.zero_()[4:8] = 64
        attention.out_proj.weight.copy_(torch.eye(4))
    queries = torch.full((1, 2, 4), 8.0)
    rows = torch.tensor([[[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]]])
    exact = attention(queries, rows, NOTHING)
    with torch.autocast("cpu", torch.bfloat16):
        short = attention(queries, rows, NOTHING)
    torch.testing.assert_close(short.float(), exact, rtol=0.02, atol=0.02)


def test_alignments_are_not_of_short_products():
    torch.manual_seed(1)
    attention = Attention(UNITS, HEADS)
    read, written = torch.randn(PAIRS, READ, UNITS), torch.randn(PAIRS, 3, UNITS)
    expected = attention.first_head(written, read, PADDING)
    with torch.autocast("cpu", torch.bfloat16):
        found = attention.first_head(written, read, PADDING)
    assert torch.equal(found, expected)
