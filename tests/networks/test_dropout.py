"""Compiled dropout: what it drops, scales and repeats."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from moses_feature.networks.dropout import Dropout
from moses_feature.transformer.network import Transformer
from moses_feature.transformer.settings import TransformerSizes


def dropped(
    p: float, shape: tuple[int, ...], seed: int = 1, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(p)(torch.ones(shape, dtype=dtype))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.999])
def test_a_share_p_is_zero_and_the_mean_stays(p):
    found = dropped(p, (300, 1001))
    assert found.unique().tolist() == [0.0, pytest.approx(1 / (1 - p))]
    deviation = (p * (1 - p) / found.numel()) ** 0.5
    assert (found == 0).double().mean().item() == pytest.approx(p, abs=5 * deviation)


@pytest.mark.parametrize("width", [8, 128, 1000])
def test_components_are_dropped_independently(width):
    """Any two of a row are both zero as often as by chance, and so are those of two calls."""
    zero = torch.cat([dropped(0.5, (100_000, width), seed)[:, :8] for seed in (1, 2)], 1) == 0
    both = zero.double().T @ zero.double() / len(zero)
    expected = torch.full((16, 16), 0.25, dtype=torch.double).fill_diagonal_(0.5)
    torch.testing.assert_close(both, expected, atol=0.01, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_neither_threads_nor_the_type_decide_what_is_dropped(dtype, monkeypatch):
    alone = dropped(0.3, (40, 50))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr("moses_feature.networks.dropout.FEWEST", 1)
    found = dropped(0.3, (40, 50), dtype=dtype)
    assert torch.equal(found, alone.to(dtype))


def test_other_numbers_are_dropped_by_pytorch():
    assert (dropped(0.5, (100, 10), dtype=torch.double) == 0).double().mean() == pytest.approx(
        0.5, abs=0.1
    )


def test_the_seed_decides_and_the_gradient_is_that_of_what_is_kept():
    torch.testing.assert_close(dropped(0.3, (7, 5), 2), dropped(0.3, (7, 5), 2), rtol=0, atol=0)
    assert (dropped(0.3, (70, 5), 2) != dropped(0.3, (70, 5), 3)).any()
    x = torch.randn(9, 11, requires_grad=True)
    torch.manual_seed(4)
    Dropout(0.4)(x).sum().backward()
    torch.testing.assert_close(x.grad, dropped(0.4, (9, 11), 4))


def test_nothing_is_dropped_outside_training_or_without_a_share():
    x = torch.randn(5, 6)
    assert Dropout(0.4).eval()(x) is x
    torch.testing.assert_close(Dropout(0.0)(x), x)


def test_almost_everything_is_dropped():
    assert (dropped(1 - 1e-12, (30, 40)) == 0).all()


def test_every_dropout_of_a_transformer_is_compiled():
    sizes = TransformerSizes(units=8, inner=8, heads=2, encoder_layers=1, decoder_layers=1)
    network = Transformer(sizes, 9, 9, dropout=0.25)
    found = [part for part in network.modules() if isinstance(part, nn.Dropout)]
    assert len(found) == 3  # of the embeddings, and of a layer on each side
    assert all(isinstance(part, Dropout) and part.p == 0.25 for part in found)
