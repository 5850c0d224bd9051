"""Training checkpoints: weights, optimiser and progress in one safetensors file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from moses_feature.networks.files import CHECKPOINT
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import Json, whole_file
from moses_feature.runtime.json_files import difference, member, parse_json

WHAT = "a checkpoint"
STEP = "step"
KEPT = {
    torch.optim.Adam: {STEP, "exp_avg", "exp_avg_sq"},
    torch.optim.Adadelta: {STEP, "square_avg", "acc_delta"},
}
"""What optimisers keep of a parameter: the number of steps, and tensors of its shape."""


def save_checkpoint(
    directory: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Json,
    identity: Json,
) -> None:
    """Replace the checkpoint of a run.

    Args:
        directory: the model directory; created if missing.
        network: its weights are saved.
        optimizer: its state and learning rate are saved.
        state: the progress of the run; JSON.
        identity: the facts that must be the same when the run is resumed; JSON.
    """
    directory.mkdir(parents=True, exist_ok=True)
    metadata = {
        "state": json.dumps(state),
        "identity": json.dumps(identity),
        "learning_rate": json.dumps(optimizer.param_groups[0]["lr"]),
    }
    with whole_file(directory / CHECKPOINT) as temporary:
        save_file(saved_tensors(network, optimizer), temporary, metadata)


def saved_tensors(network: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return weights and the optimiser's state by name, in main memory."""
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    for number, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            tensors[f"optimizer.{number}.{name}"] = value
    saved: dict[str, torch.Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        own = tensor.cpu()
        saved[name] = own.clone() if own.data_ptr() in places else own  # weights with two names
        places.add(own.data_ptr())
    return saved


def settings_of_run(directory: Path) -> Json | None:
    """Return the settings of the run that began in a model directory; None if none did.

    Raises:
        FormatError: its checkpoint is damaged.
    """
    path = directory / CHECKPOINT
    if not path.is_file():
        return None
    texts = _read(path)[0]
    identity = parse_json(texts["identity"], path, WHAT)
    settings: Json = member(identity, "settings", dict[str, Any], path, WHAT)
    return settings


def _read(path: Path, *, whole: bool = False) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """Return the texts of a checkpoint, and its tensors if it is wanted as a whole."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            names = file.keys() if whole else ()
            tensors = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise FormatError(path, WHAT, f"a damaged file ({error})") from error
    texts = dict(metadata or {})
    for name in ("identity", "state", "learning_rate"):
        member(texts, name, str, path, WHAT)
    return texts, tensors


def load_checkpoint(
    directory: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    identity: Json,
) -> Json:
    """Restore weights and optimiser, and return the saved state.

    Raises:
        MosesFeatureError: there is no checkpoint, or it is that of another run.
        FormatError: the file is damaged.
    """
    path = directory / CHECKPOINT
    if not path.is_file():
        raise MosesFeatureError(f"{directory}: nothing to resume, {CHECKPOINT} is missing")
    texts, tensors = _read(path, whole=True)
    if other := difference(identity, parse_json(texts["identity"], path, WHAT)):
        raise FormatError(path, f"a run with {other.key} {other.expected}", other.found)
    state = parse_json(texts["state"], path, WHAT)
    try:
        restore(network, optimizer, tensors, float(texts["learning_rate"]))
        if state.get("update") or optimizer.state:
            _check_shapes(network, optimizer)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(path, WHAT, f"a damaged file ({reason})") from error
    return state


def _check_shapes(network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Check that the optimiser knows of each parameter what it keeps, with its shape."""
    states = optimizer.state_dict()["state"]
    for number, parameter in enumerate(network.parameters()):
        kept = states[number]
        if kept.keys() != KEPT[type(optimizer)]:
            raise ValueError(f"parameter {number}: {', '.join(kept)}")
        for name, tensor in kept.items():
            if tensor.shape != (() if name == STEP else parameter.shape):
                raise ValueError(f"{name} of parameter {number}: shape {tuple(tensor.shape)}")


def restore(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    tensors: dict[str, torch.Tensor],
    learning_rate: float,
) -> None:
    """Restore weights and the optimiser's state as returned by `saved_tensors`."""
    prefix = "network."
    weights = {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
    network.load_state_dict(weights)
    saved = optimizer.state_dict()
    saved["state"] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            saved["state"].setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict(saved)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
