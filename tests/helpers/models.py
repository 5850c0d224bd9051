"""Tiny models with random weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import PairSizes
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.networks.pair_network import network_of
from moses_feature.networks.pieces import learn_pieces
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.model import PhraseModel
from moses_feature.phrases.settings import Sizes
from moses_feature.rnnsearch.settings import RnnSearchSizes
from moses_feature.transformer.settings import TransformerSizes

# Unequal primes, so that a swapped axis cannot pass.
SIZES = Sizes(hidden=13, embedding=5, maxout=7, rank=3)
SOURCE_WORDS = b"a b c d the dog &apos; \xe9t\xe9 [1] one|N".split(b" ")
TARGET_WORDS = b"A B C D le chien un &apos; \xc3\xa9t\xc3\xa9 [1] noir".split(b" ")


TRANSFORMER_SIZES = TransformerSizes(
    units=12, heads=3, inner=17, encoder_layers=2, decoder_layers=3
)
SEARCH_SIZES = RnnSearchSizes(hidden=13, embedding=5, alignment=11, maxout=7)


def with_pieces(model: PhraseModel, seed: int = 1, scale: float = 0.5) -> PhraseModel:
    """Return a model of the same sizes that reads and writes pieces of the same words."""
    letters = np.random.default_rng(5).choice(list("abcdehinot"), (90, 5))
    text = [" ".join(map("".join, letters)).encode()] * 9
    source, target = (
        learn_pieces([*text, b" ".join(side.shortlist)], 300, "text")
        for side in (model.source, model.target)
    )
    network = network_of(model.network.sizes, len(source), len(target))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=scale, generator=generator)
    return replace(model, network=network, source=source, target=target)


def random_model(
    sizes: PairSizes = SIZES,
    seed: int = 1,
    scale: float = 0.5,
    direction: Direction = FORWARD,
) -> PhraseModel:
    """Return a model with random weights, biases too, of a size that makes scores differ."""
    source, target = Vocabulary(tuple(SOURCE_WORDS)), Vocabulary(tuple(TARGET_WORDS))
    if direction.reverse:
        source, target = target, source
    network = network_of(sizes, len(source), len(target))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=scale, generator=generator)
        for rate in network.buffers():
            rate.uniform_(0.02, 1.0, generator=generator)
    training = {"settings": {"seed": seed}}
    return PhraseModel(network, source, target, WordOptions(), training, True, direction)
