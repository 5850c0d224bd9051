"""Checkpoints: what was saved comes back; a damaged optimiser state is refused."""

from __future__ import annotations

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from moses_feature.runtime.errors import FormatError
from moses_feature.training.checkpoint import (
    CHECKPOINT,
    load_checkpoint,
    save_checkpoint,
    saved_tensors,
)


def trained(kind: type[torch.optim.Optimizer], steps: int):
    torch.manual_seed(1)
    network = torch.nn.Linear(3, 2)
    optimizer = kind(network.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        network(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    return network, optimizer


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.Adadelta])
def test_what_was_saved_comes_back(tmp_path, kind):
    saved = trained(kind, 3)
    save_checkpoint(tmp_path, *saved, {"update": 3}, {"data": "x"})
    loaded = trained(kind, 1)
    assert load_checkpoint(tmp_path, *loaded, {"data": "x"}) == {"update": 3}
    expected, found = saved_tensors(*saved), saved_tensors(*loaded)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("optimizer.0.exp_avg", torch.zeros(()), r"exp_avg of parameter 0: shape \(\)"),
        ("optimizer.1.exp_avg_sq", torch.zeros(3), r"exp_avg_sq of parameter 1: shape \(3,\)"),
        ("optimizer.0.step", torch.zeros(2), r"step of parameter 0: shape \(2,\)"),
        ("optimizer.0.exp_avg", None, "parameter 0: exp_avg_sq, step"),
        ("network.weight", torch.zeros(1), "size mismatch"),
    ],
)
def test_damaged_states_are_refused(tmp_path, name, value, message):
    save_checkpoint(tmp_path, *trained(torch.optim.Adam, 2), {"update": 2}, {})
    with safe_open(tmp_path / CHECKPOINT, framework="pt") as file:
        metadata = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    tensors.pop(name)
    if value is not None:
        tensors[name] = value
    save_file(tensors, tmp_path / CHECKPOINT, metadata)
    with pytest.raises(FormatError, match=message):
        load_checkpoint(tmp_path, *trained(torch.optim.Adam, 1), {})
