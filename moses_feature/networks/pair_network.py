"""The common base of all networks for pairs, and their initial weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import cast

import numpy as np
import torch
from torch import nn

from moses_feature.networks.architectures import ARCHITECTURES, PairSizes, architecture_with
from moses_feature.networks.vocabulary import END
from moses_feature.runtime.arrays import Integers


def draw_weights(
    network: nn.Module,
    recurrent: Iterable[nn.Linear],
    target_embedding: nn.Embedding,
    generator: torch.Generator,
) -> None:
    """Draw the weights as in section 4.1.1 of Cho et al. 2014; biases are zero.

    Weights are Gaussian with standard deviation 0.01; each square (H, H) of the recurrent matrices
    is the left singular vectors of a Gaussian matrix. The embedding of END as a target is zero.
    """
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            else:
                parameter.normal_(std=0.01, generator=generator)
        for layer in recurrent:
            hidden = layer.in_features
            for square in torch.split(layer.weight, hidden):
                gaussian = torch.randn(hidden, hidden, generator=generator)
                square.copy_(torch.linalg.svd(gaussian).U)
        target_embedding.weight[END].zero_()


def begin_with_frequencies(network: nn.Module, counts: Integers) -> None:
    """Set the biases of `output_words` to the log relative frequencies of the words.

    All other weights begin near 0, so log Z does, too (Devlin et al. 2014 use -log V for all
    words). With biases of 0, a network trained with a sampled Z that should be 1 would have to
    learn it for rare words from the few updates that sample them.

    Args:
        network: the network, its other weights already drawn.
        counts: (V,) counts of the words in the training data.
    """
    log_p = np.log((counts + 1.0) / (counts + 1.0).sum()).astype(np.float32)
    with torch.no_grad():
        for name, layer in network.named_modules():
            if name.startswith("output_words") and isinstance(layer, nn.Linear):
                layer.bias.copy_(torch.from_numpy(log_p))


class PairNetwork(nn.Module):
    """p(target | source) as a product over the target words.

    Attributes:
        sizes: its layer sizes, whose class determines the architecture.
        source_embedding: the embedding of the words that it reads.
        dropout: the share of components that are zeroed in training.

    `forward` takes source, source lengths, target, target lengths and a sample of words or None; it
    returns log p and log Z of every target word, END included (see `EncoderDecoder.forward`).
    """

    sizes: PairSizes
    source_embedding: nn.Embedding
    dropout: nn.Dropout

    @abstractmethod
    def initialise(self, generator: torch.Generator) -> None:
        """Draw the initial weights."""

    @classmethod
    def shapes(
        cls, sizes: PairSizes, source_words: int, target_words: int
    ) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights of a network, by name."""
        with torch.device("meta"):
            network = network_of(sizes, source_words, target_words)
        return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}

    def share_embeddings(self) -> None:
        """Tie the embeddings of both sides, whose words are the same; does nothing if it cannot."""


def network_of(
    sizes: PairSizes, source_words: int, target_words: int, dropout: float = 0.0
) -> PairNetwork:
    """Return a network of some sizes, whose class determines the architecture."""
    network = ARCHITECTURES[architecture_with(sizes)].load("network")
    return cast(PairNetwork, network(sizes, source_words, target_words, dropout))
