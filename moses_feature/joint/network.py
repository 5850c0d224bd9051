"""The joint language model of Devlin et al. 2014 (NNJM), with the layers of the language model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from moses_feature.joint.sizes import JointSizes
from moses_feature.lm.network import FeedForwardLM


class JointLM(FeedForwardLM):
    """p(word | the source words around its affiliation, the order - 1 words before it).

    A context is the ids of the source words from left to right, then those of the target words.
    """

    def __init__(self, sizes: JointSizes, source: int, target: int, dropout: float = 0.0) -> None:
        super().__init__(sizes, target, dropout)
        self.source_words = sizes.source_words
        self.source_projection = nn.Embedding(source, sizes.projection)

    def projected(self, contexts: Tensor) -> Tensor:
        """Return the projections (N, positions, projection) of the words of contexts."""
        source, target = contexts[:, : self.source_words], contexts[:, self.source_words :]
        return torch.cat([self.source_projection(source), self.projection(target)], 1)
