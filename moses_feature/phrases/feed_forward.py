"""The feed-forward network for phrase pairs that the paper compares itself with (Schwenk 2012).

It reads a fixed number of source words at once, and has a softmax of its own for each target
position: all words of a target are independent of each other, given the source.

Axes: B phrase pairs, P positions, M target words of the longest phrase, E embedding, H hidden
units, R units of the second layer, V target words.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from moses_feature.networks.pair_network import PairNetwork
from moses_feature.networks.softmax import WordSample, log_probs_and_norms
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.settings import FeedForwardSizes


class FeedForwardNetwork(PairNetwork):
    """p(target phrase | source phrase) as a product over the target positions.

    Source words after the P-th are not read; target words after the (P + 1)-th, END counted, have
    the softmax of the last position.
    """

    sizes: FeedForwardSizes

    def __init__(
        self, sizes: FeedForwardSizes, source_words: int, target_words: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.dropout = nn.Dropout(dropout)
        self.source_embedding = nn.Embedding(source_words, sizes.embedding)
        self.hidden = nn.Linear(sizes.positions * sizes.embedding, sizes.hidden)
        self.second = nn.Linear(sizes.hidden, sizes.rank)
        self.output_words = nn.ModuleList(
            nn.Linear(sizes.rank, target_words) for _ in range(sizes.positions + 1)
        )

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights: Gaussian with a standard deviation of 1 / sqrt(inputs); no biases.

        With the 0.01 of the paper, which is for recurrent networks, two layers of tanh would begin
        with next to nothing.
        """
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.endswith("bias"):
                    parameter.zero_()
                elif "embedding" in name:
                    parameter.normal_(std=0.1, generator=generator)
                else:
                    parameter.normal_(std=parameter.shape[1] ** -0.5, generator=generator)

    def features(self, source: Tensor) -> Tensor:
        """Return the units (B, R) of the last layer before the softmaxes.

        Args:
            source: (B, any) word ids, END after each phrase and behind it.
        """
        positions = self.sizes.positions
        read = functional.pad(source, (0, positions), value=END)[:, :positions]
        embedded = self.dropout(self.source_embedding(read)).flatten(1)
        features: Tensor = self.dropout(torch.tanh(self.second(torch.tanh(self.hidden(embedded)))))
        return features

    def output_at(self, position: int) -> nn.Linear:
        """Return what gives the logits (V) of a target position, from 0."""
        return cast(nn.Linear, self.output_words[min(position, self.sizes.positions)])

    def forward(
        self,
        source: Tensor,
        source_lengths: Tensor,
        target: Tensor,
        target_lengths: Tensor,
        sample: WordSample | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return log p and log Z of every target word, END included; see `EncoderDecoder`."""
        del source_lengths
        features = self.features(source)
        # Every softmax has its part in every update, be it of no words.
        rest = max(0, self.sizes.positions + 1 - target.shape[1])
        target = functional.pad(target, (0, rest), value=END)
        found = []
        for position in range(target.shape[1]):
            rows = torch.nonzero(target_lengths >= position)[:, 0]
            output, words = self.output_at(position), target[rows, position]
            found.append(log_probs_and_norms(features[rows], output, words, sample))
        place = torch.arange(target.shape[1], device=target.device)
        real = place <= target_lengths[:, None]  # (B, M + 1), 1 for words and the first END
        pair_after_pair = torch.argsort(torch.nonzero(real.t())[:, 1], stable=True)
        log_probs, log_norms = (
            torch.cat(some)[pair_after_pair] for some in zip(*found, strict=True)
        )
        return log_probs, log_norms
