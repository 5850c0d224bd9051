"""Layer sizes and recipe of the Transformer; free of torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_feature.networks.architectures import PairSizes
from moses_feature.runtime.arrays import Floats32
from moses_feature.sentences.settings import Recipe, SentenceSettings


@dataclass(frozen=True)
class TransformerSizes(PairSizes):
    """Layer sizes of a Transformer (Vaswani et al. 2017).

    Units of a state, of which each head has its share; units of the feed-forward layers; layers.
    """

    units: int
    heads: int
    inner: int
    encoder_layers: int
    decoder_layers: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.units % (2 * self.heads):
            raise ValueError(f"units: expected a multiple of 2 x {self.heads} heads")


TRANSFORMER_PRESETS = {
    "paper": TransformerSizes(512, 8, 2048, 6, 6),  # "base", Vaswani et al. 2017
    "small": TransformerSizes(128, 4, 256, 4, 4),
}

RECIPE = Recipe(
    TRANSFORMER_PRESETS,
    {
        "heads": "heads that share the units",
        "inner": "units of the feed-forward layers",
        "encoder_layers": "layers that read",
        "decoder_layers": "layers that write",
        "units": "units of a state",
    },
    preset="small",
    subwords=8000,
    subwords_from="both",
    settings=SentenceSettings(
        batch_size=128,
        warmup=600,
        label_smoothing=0.1,
        dropout=0.3,
        patience=8,
        pool=200,
    ),
    with_budget={"cooldown": 0.7},
    with_cooldown={"annealing": 1.0, "patience": 0},
    rate=lambda sizes: 0.5 / sizes.units,  # 0.0039 for 128 (0.004 and 0.005 were tried)
)

LONGEST_WAVE = 10_000.0


def waves(places: int, units: int) -> Floats32:
    """Return the encoding (places, units) of positions by sines and cosines (section 3.5)."""
    half = np.arange(0, units, 2) / units
    angles = np.arange(places)[:, None] * LONGEST_WAVE**-half
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)
