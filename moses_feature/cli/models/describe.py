"""What `moses-feature describe` says of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.networks.files import CONFIG, architecture_of, trained_self_normalised
from moses_feature.runtime.files import Json

if TYPE_CHECKING:
    from moses_feature.cslm.scorer import NeuralLM
    from moses_feature.phrases.model import PhraseModel


SIZES = {
    "hidden": "hidden units",
    "embedding": "embedding",
    "alignment": "alignment units",
    "maxout": "maxout units",
    "unit": "kind of hidden units",
    "rank": "output rank",
}


def describe_model(directory: Path) -> Iterator[tuple[str, Any]]:
    """Yield what a model is, and how it was trained: names and values.

    Raises:
        MosesFeatureError: there is no model, or it is damaged.
    """
    from moses_feature.cslm.nplm import load_neural_lm
    from moses_feature.phrases.model import load_model

    is_model = (directory / CONFIG).is_file()
    architecture = architecture_of(directory) if is_model else None
    if directory.is_file() or architecture == LM_ARCHITECTURE:
        yield from _lm_description(load_neural_lm(directory))
    else:
        yield from _description(load_model(directory))


def _lm_description(model: NeuralLM) -> Iterator[tuple[str, Any]]:
    sizes = model.sizes
    yield "order", sizes.order
    yield "projection", sizes.projection
    yield "rectified layers", f"{sizes.first}, {sizes.second}"
    yield "parameters", f"{sum(array.size for array in model.weights.values()):,}"
    yield "words", f"{len(model.vocabulary.shortlist):,}"
    yield "self-normalised", "no" if model.normalised else "yes: log Z is not subtracted"
    if isinstance(loss := model.training.get("held_out_loss"), float):
        yield "held-out perplexity", f"{math.exp(min(loss, 700.0)):.2f}"
    if isinstance(norm := model.training.get("mean_absolute_log_norm"), float):
        yield "mean |log Z|", f"{norm:.3f}"
    yield from _provenance(model.training, "sentences")


def _description(model: PhraseModel) -> Iterator[tuple[str, Any]]:
    from moses_feature.networks.architectures import architecture_with
    from moses_feature.networks.pieces import PieceVocabulary

    network = model.network
    sizes = network.sizes
    yield "architecture", architecture_with(sizes)
    for name, size in vars(sizes).items():
        yield SIZES.get(name, name.replace("_", " ")), size
    yield "parameters", f"{sum(p.numel() for p in network.parameters()):,}"
    yield "direction", model.direction
    for side, of in ("source", model.source), ("target", model.target):
        if isinstance(of, PieceVocabulary):
            yield f"{side} subwords", f"{len(of):,}"
        else:
            yield f"{side} words", f"{len(of.shortlist):,}"
    yield "escaped", "yes" if model.escaped else "no"
    yield "self-normalised", _self_normalised(model)
    yield "weights SHA-256", model.digest
    if isinstance(loss := model.training.get("held_out_loss"), float):
        yield model.measure, model.shown_loss(loss)
    yield from _provenance(model.training, "pairs")


def _self_normalised(model: PhraseModel) -> str:
    if model.self_normalised:
        return "yes: log Z is not subtracted"
    if trained_self_normalised(model.training):
        return "yes: log Z is not subtracted in n-best lists"
    return "no"


def _provenance(training: Json, *examples: str) -> Iterator[tuple[str, Any]]:
    """Yield how many examples a model was trained on, how long, and where they come from."""
    history = training.get("history")
    last = history[-1] if isinstance(history, list) and history else None
    if isinstance(last, dict) and {"update", "minutes"} <= last.keys():
        yield "best after", f"{last['update']} updates, {last['minutes']} minutes"
    for name in (*examples, "command", "version"):
        if name in training:
            yield name, training[name]
    inputs = training.get("inputs")
    yield from _inputs("trained on", inputs if isinstance(inputs, list) else [])


def _inputs(what: str, inputs: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the files that a model was made of."""
    for entry in inputs:
        if isinstance(entry, dict):
            role, lines = entry.get("role", "input"), entry.get("lines")
            yield what, f"{entry.get('path')} ({role}, {lines} lines)"
