"""What all networks for pairs of phrases or sentences have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

import torch
from torch import nn

from moses_feature.networks.architectures import ARCHITECTURES, architecture_with
from moses_feature.networks.sizes import PairSizes


class PairNetwork(nn.Module):
    """p(target | source) as a product over the target words.

    Attributes:
        sizes: of its layers, which say of which architecture it is.
        source_embedding: of the words that it reads.
        dropout: of all components that training leaves out.

    `forward` takes source, source lengths, target, target lengths and a sample of words or None; it
    returns log p and log Z of every target word, END included (see `EncoderDecoder.forward`).
    """

    sizes: PairSizes
    source_embedding: nn.Embedding
    dropout: nn.Dropout

    @abstractmethod
    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights that training begins with."""


def network_of(
    sizes: PairSizes, source_words: int, target_words: int, dropout: float = 0.0
) -> PairNetwork:
    """Return a network of some sizes, which say of which architecture it is."""
    network = ARCHITECTURES[architecture_with(sizes)].load("network")
    return cast(PairNetwork, network(sizes, source_words, target_words, dropout))
