"""How the weights of the recurrent networks are drawn."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from moses_feature.networks.vocabulary import END
from moses_feature.runtime.arrays import Integers


def draw_weights(
    network: nn.Module,
    recurrent: Iterable[nn.Linear],
    target_embedding: nn.Embedding,
    generator: torch.Generator,
) -> None:
    """Draw the weights as section 4.1.1 of Cho et al. 2014 has it; biases are zero.

    Gaussian with standard deviation 0.01; each square (H, H) of the recurrent matrices: the left
    singular vectors of a Gaussian matrix. The embedding of END as a target word is zero.
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
    """Let the biases of `output_words` be the logs of how frequent the words are.

    As other weights begin near 0, log Z does then, too (Devlin et al. 2014 take -log V for all
    words). From biases of 0 a network whose Z is estimated from samples, and is to be 1, would
    have to learn it for rare words from the few updates that sample them.

    Args:
        network: whose other weights are drawn.
        counts: (V,) of the words in what is trained on.
    """
    log_p = np.log((counts + 1.0) / (counts + 1.0).sum()).astype(np.float32)
    with torch.no_grad():
        for name, layer in network.named_modules():
            if name.startswith("output_words") and isinstance(layer, nn.Linear):
                layer.bias.copy_(torch.from_numpy(log_p))
