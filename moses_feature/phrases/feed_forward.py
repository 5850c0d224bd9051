"""The feed-forward network for phrase pairs with which the paper compares (Schwenk 2012).

It reads a fixed number of source words at once, and has a separate softmax for each target
position: given the source, the target words are independent of each other. So the softmax of a
position is computed once for all targets of a source phrase, in blocks of a fixed number of rows
(the reason is in `steps.py`).

Axes: B phrase pairs, P positions, M target words of the longest phrase, E embedding, H hidden
units, R units of the second layer, V target words; of the scorer: n source phrases, K rows of a
block.
"""

from __future__ import annotations

from queue import SimpleQueue
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from moses_feature.networks.computation import ROWS, Computation
from moses_feature.networks.dropout import Dropout
from moses_feature.networks.output_layer import OutputLayer, OutputWeights
from moses_feature.networks.pair_network import PairNetwork
from moses_feature.networks.phrases import Level, Phrases, phrases_of
from moses_feature.networks.softmax import word_terms
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_sample import WordSample
from moses_feature.phrases.packing import PackedPairs
from moses_feature.phrases.settings import FeedForwardSizes
from moses_feature.runtime.arrays import Integers


class FeedForwardNetwork(PairNetwork):
    """p(target phrase | source phrase) as a product over the target positions.

    Source words after the P-th are ignored; target words after the (P + 1)-th, END counted, share
    the softmax of the last position.
    """

    sizes: FeedForwardSizes

    def __init__(
        self, sizes: FeedForwardSizes, source_words: int, target_words: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.dropout = Dropout(dropout)
        self.source_embedding = nn.Embedding(source_words, sizes.embedding)
        self.hidden = nn.Linear(sizes.positions * sizes.embedding, sizes.hidden)
        self.second = nn.Linear(sizes.hidden, sizes.rank)
        self.output_words = nn.ModuleList(
            nn.Linear(sizes.rank, target_words) for _ in range(sizes.positions + 1)
        )

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights: Gaussian with a standard deviation of 1 / sqrt(inputs); no biases.

        The paper's 0.01, meant for recurrent networks, would make the output of two tanh layers
        almost zero.
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
        """Return the layer of the logits (V) of a target position, from 0."""
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
        # Every softmax must take part in every update, even if with no words.
        rest = max(0, self.sizes.positions + 1 - target.shape[1])
        target = functional.pad(target, (0, rest), value=END)
        found = []
        for position in range(target.shape[1]):
            rows = torch.nonzero(target_lengths >= position)[:, 0]
            output, words = self.output_at(position), target[rows, position]
            found.append(word_terms(features[rows], output, words, sample))
        place = torch.arange(target.shape[1], device=target.device)
        real = place <= target_lengths[:, None]  # (B, M + 1), 1 for words and the first END
        pair_after_pair = torch.argsort(torch.nonzero(real.t())[:, 1], stable=True)
        log_probs, log_norms = (
            torch.cat(some)[pair_after_pair] for some in zip(*found, strict=True)
        )
        return log_probs, log_norms


class FeedForwardScorer:
    """Scores phrase pairs with one feed-forward network on the CPU.

    Args:
        network: the network.
        computation: threads, type of the products, normalisation.
    """

    def __init__(self, network: FeedForwardNetwork, computation: Computation) -> None:
        self._network = network.eval()
        self._executor = computation.executor
        of_products = computation.dtype, computation.normalised
        outputs = [
            OutputWeights.of(layer.weight.detach(), layer.bias.detach(), *of_products)
            for layer in map(network.output_at, range(network.sizes.positions + 1))
        ]
        self._layers: SimpleQueue[list[OutputLayer]] = SimpleQueue()
        for _ in range(computation.workers):
            self._layers.put([OutputLayer(output, ROWS) for output in outputs])

    def word_log_probs(self, pairs: PackedPairs) -> NDArray[np.float64]:
        """Return log p of every target word and END, pair after pair."""
        features = self._features(Phrases.pack(phrases_of(pairs.source_levels)))
        found = np.empty(pairs.offsets[-1])
        source = np.arange(len(features))  # source phrase of each node
        for position, level in enumerate(pairs.target_levels):
            of_edge = source[level.parent]
            log_probs = self._log_probs(features, position, of_edge, level)
            found[pairs.offsets[level.rows] + position] = log_probs[level.edge_of_row]
            source = of_edge[level.grows]
        return found

    def _features(self, sources: Phrases) -> Tensor:
        """Return the units (n, R) of the last layer before the softmaxes."""
        if not len(sources):
            return torch.empty(0, self._network.sizes.rank)
        words, _ = sources.padded(np.arange(len(sources)), END)
        widest = np.full((len(words), self._network.sizes.positions), END)
        widest[:, : words.shape[1]] = words[:, : widest.shape[1]]
        rows = torch.from_numpy(widest)

        @torch.inference_mode()
        def read(first: int) -> Tensor:
            some = torch.arange(first, first + ROWS)
            return self._network.features(rows[some.clamp(max=len(rows) - 1)])

        parts = self._executor.map(read, range(0, len(rows), ROWS))
        return torch.cat(list(parts))[: len(rows)]

    def _log_probs(
        self, features: Tensor, position: int, of_edge: Integers, level: Level
    ) -> NDArray[np.float64]:
        """Return log p of the words of edges, whose source phrases `of_edge` are ascending."""
        needed, row = np.unique(of_edge, return_inverse=True)
        found = np.empty(len(row))

        @torch.inference_mode()
        def score(first: int) -> None:
            begin, end = np.searchsorted(row, (first, first + ROWS))
            some = np.minimum(np.arange(first, first + ROWS), len(needed) - 1)
            block = features[torch.from_numpy(needed[some])]
            place, word = (
                torch.from_numpy(array[begin:end]) for array in (row - first, level.word)
            )
            layers = self._layers.get()
            try:
                log_probs = layers[min(position, len(layers) - 1)](block, place, word)
                found[begin:end] = log_probs.numpy()
            finally:
                self._layers.put(layers)

        for _ in self._executor.map(score, range(0, len(needed), ROWS)):
            pass
        return found
