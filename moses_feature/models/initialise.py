"""How the weights of the recurrent networks are drawn."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from moses_feature.models.vocabulary import END


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
