"""Layer sizes and recipe of the Transformer; free of torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moses_feature.networks.architectures import PairSizes
from moses_feature.runtime.arrays import Floats32
from moses_feature.sentences.recipe import Recipe
from moses_feature.sentences.settings import SentenceSettings


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

    def shapes(self, source_words: int, target_words: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights by their names in `Transformer`."""
        units, inner = self.units, self.inner
        shapes: dict[str, tuple[int, ...]] = {
            "source_embedding.weight": (source_words, units),
            "output_words.weight": (target_words, units),
            "output_words.bias": (target_words,),
        }
        sides = ("encoder", self.encoder_layers, 1), ("decoder", self.decoder_layers, 2)
        for side, layers, attentions in sides:
            for layer in range(layers):
                begin = f"{side}.layers.{layer}."
                for name in ("self_attn", "multihead_attn")[:attentions]:
                    shapes |= _shapes(f"{begin}{name}.in_proj_", (3 * units, units))
                    shapes |= _shapes(f"{begin}{name}.out_proj.", (units, units))
                shapes |= _shapes(f"{begin}linear1.", (inner, units))
                shapes |= _shapes(f"{begin}linear2.", (units, inner))
                for number in range(attentions + 1):
                    shapes |= _shapes(f"{begin}norm{number + 1}.", (units,))
            shapes |= _shapes(f"{side}.norm.", (units,))
        return shapes


def _shapes(prefix: str, weight: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    return {f"{prefix}weight": weight, f"{prefix}bias": weight[:1]}


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
