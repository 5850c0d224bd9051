"""The feed-forward language model of Cho et al. 2014, section 4.1.2 (CSLM; Schwenk 2007).

The projections of the context words, concatenated, go through two rectified layers and a softmax
over the shortlist.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from moses_feature.cslm.settings import LmSizes
from moses_feature.networks.softmax import word_log_probs

INITIAL_RANGE = 0.01


class FeedForwardLM(nn.Module):
    """p(word | the order - 1 words before it), END standing for what is before the sentence.

    With dropout, which the paper has not, a share of the projections' and of the second layer's
    components is zero in training, the others are scaled up.
    """

    def __init__(self, sizes: LmSizes, words: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.sizes = sizes
        self.dropout = nn.Dropout(dropout)
        self.projection = nn.Embedding(words, sizes.projection)
        self.first = nn.Linear(sizes.positions * sizes.projection, sizes.first)
        self.second = nn.Linear(sizes.first, sizes.second)
        self.output = nn.Linear(sizes.second, words)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights from U[-0.01, 0.01], as the paper does; biases are zero."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.endswith("bias"):
                    parameter.zero_()
                else:
                    parameter.uniform_(-INITIAL_RANGE, INITIAL_RANGE, generator=generator)

    def projected(self, contexts: Tensor) -> Tensor:
        """Return the projections (N, positions, projection) of the words of contexts."""
        projections: Tensor = self.projection(contexts)
        return projections

    def forward(self, contexts: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return log p and log Z (natural logs) of words, each (N,).

        Args:
            contexts: (N, positions) ids of the words before, the nearest one last.
            words: (N,) ids.
        """
        projected = self.dropout(self.projected(contexts).flatten(1))
        features = self.dropout(torch.relu(self.second(torch.relu(self.first(projected)))))
        weight, bias = self.output.weight, self.output.bias
        log_probs = word_log_probs(features, weight, bias, words)
        logits = (features.to(weight.dtype) * weight[words]).sum(1) + bias[words]
        return log_probs, logits - log_probs
