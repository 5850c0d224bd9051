"""The scorer and the packer of a model, of one network or of several."""

from __future__ import annotations

import torch

from moses_feature.models.cross_fitting import CrossFittedModel
from moses_feature.models.phrase_model import PhraseModel
from moses_feature.models.sizes import Dtype
from moses_feature.scoring.packing import AnyPacker, CrossFittedPacker, Packer
from moses_feature.scoring.scorer import Scorer


def scorer_of(
    model: PhraseModel | CrossFittedModel,
    device: torch.device,
    dtype: Dtype = "float32",
    threads: int | None = None,
    *,
    normalised: bool = False,
) -> Scorer:
    """Return what scores phrase pairs with a model; see `Scorer`.

    Args:
        model: whose networks score.
        device: see there, as for the others.
        dtype: see there.
        threads: see there.
        normalised: subtract log Z of a self-normalised network, too.
    """
    parts = model.networks if isinstance(model, CrossFittedModel) else (model,)
    networks = [part.network for part in parts]
    subtracts = normalised or not parts[0].self_normalised
    return Scorer(networks, packer_of(model), device, dtype, threads, normalised=subtracts)


def packer_of(model: PhraseModel | CrossFittedModel) -> AnyPacker:
    """Return what turns words into what the networks of a model score."""
    packer = Packer(model.source, model.target, model.reading)
    if isinstance(model, PhraseModel):
        return packer
    return CrossFittedPacker(packer, model.folds, model.sources)
