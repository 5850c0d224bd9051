"""A Transformer in the format of CTranslate2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from moses_feature.networks.pieces import PieceVocabulary
from moses_feature.networks.vocabulary import SYMBOLS
from moses_feature.rescoring.ctranslate2 import TEXT, TextOptions, sha256_of
from moses_feature.runtime.arrays import Floats32
from moses_feature.runtime.errors import UsageError, install
from moses_feature.runtime.files import whole_directory, write_json, write_whole
from moses_feature.transformer.settings import TransformerSizes, waves

PLACES = 2048
"""Positions that the exported model knows."""


def export_ctranslate2(
    directory: Path,
    sizes: TransformerSizes,
    weights: Mapping[str, Floats32],
    source: PieceVocabulary,
    target: PieceVocabulary,
) -> None:
    """Write a directory that CTranslate2 reads, with the pieces and how its text is made.

    Args:
        directory: the directory, which is empty or new.
        sizes: layer sizes.
        weights: arrays by their names in `Transformer`.
        source: the pieces of the source side.
        target: the pieces of the target side.

    Raises:
        UsageError: CTranslate2 is not installed.
        OutputError: the directory holds files, or cannot be written.
    """
    try:
        from ctranslate2.specs import TransformerSpec
    except ImportError:
        raise UsageError(f"this needs CTranslate2: {install('ctranslate2')}") from None
    layers = sizes.encoder_layers, sizes.decoder_layers
    spec = TransformerSpec.from_config(layers, sizes.heads, pre_norm=True)
    _fill(spec, sizes, weights)
    end, unknown = (symbol.decode() for symbol in SYMBOLS)
    spec.config.eos_token = spec.config.decoder_start_token = end
    spec.config.unk_token, spec.config.add_source_eos = unknown, True
    for register, of in (
        (spec.register_source_vocabulary, source),
        (spec.register_target_vocabulary, target),
    ):
        register([word.decode() for word in (*SYMBOLS, *of.shortlist)])
    spec.validate()
    options = TextOptions("source.spm", "target.spm")
    with whole_directory(directory) as whole:
        spec.save(str(whole))
        write_whole(whole / options.source_pieces, source.model)
        write_whole(whole / options.target_pieces, target.model)
        sha256 = {file.name: sha256_of(file) for file in sorted(whole.iterdir())}
        write_json(whole / TEXT, asdict(replace(options, sha256=sha256)))


def _fill(spec: Any, sizes: TransformerSizes, weights: Mapping[str, Floats32]) -> None:
    """Put the weights into a specification, by its names."""

    def linear(layer: Any, weight: Floats32, bias: Floats32) -> None:
        layer.weight, layer.bias = np.ascontiguousarray(weight), np.ascontiguousarray(bias)

    def named(layer: Any, name: str) -> None:
        linear(layer, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def normal(layer: Any, name: str) -> None:
        layer.gamma, layer.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    for side, layers in ("encoder", sizes.encoder_layers), ("decoder", sizes.decoder_layers):
        part = getattr(spec, side)
        part.position_encodings.encodings = waves(PLACES, sizes.units)
        part.scale_embeddings = True
        normal(part.layer_norm, f"{side}.norm")
        for number in range(layers):
            layer, begin = part.layer[number], f"{side}.layers.{number}."
            own, of_own = layer.self_attention, f"{begin}self_attn."
            linear(
                own.linear[0], weights[f"{of_own}in_proj_weight"], weights[f"{of_own}in_proj_bias"]
            )
            named(own.linear[1], f"{of_own}out_proj")
            normal(own.layer_norm, f"{begin}norm1")
            if side == "decoder":
                other, of_other = layer.attention, f"{begin}multihead_attn."
                weight, bias = (weights[f"{of_other}in_proj_{name}"] for name in ("weight", "bias"))
                linear(other.linear[0], weight[: sizes.units], bias[: sizes.units])
                linear(other.linear[1], weight[sizes.units :], bias[sizes.units :])
                named(other.linear[2], f"{of_other}out_proj")
                normal(other.layer_norm, f"{begin}norm2")
            normal(layer.ffn.layer_norm, f"{begin}norm{2 if side == 'encoder' else 3}")
            named(layer.ffn.linear_0, f"{begin}linear1")
            named(layer.ffn.linear_1, f"{begin}linear2")
    spec.encoder.embeddings[0].weight = weights["source_embedding.weight"]
    spec.decoder.embeddings.weight = weights["output_words.weight"]
    named(spec.decoder.projection, "output_words")
