"""Score phrase pairs with a feed-forward network.

The softmax of a position depends on the source phrase alone, so that it is computed once for all
targets of a source phrase, in blocks of a fixed number of rows (`steps.py` says why).

Axes: n source phrases, K rows of a block, R units of the last layer before the softmaxes.
"""

from __future__ import annotations

from queue import SimpleQueue

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moses_feature.networks.computation import ROWS, Computation
from moses_feature.networks.output_layer import OutputLayer, OutputWeights
from moses_feature.networks.phrases import Level, Phrases, phrases_of
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.feed_forward import FeedForwardNetwork
from moses_feature.phrases.packing import PackedPairs
from moses_feature.runtime.arrays import Integers


class FeedForwardScorer:
    """Scores phrase pairs with one feed-forward network on the CPU.

    Args:
        network: the network.
        computation: where and how.
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
        source = np.arange(len(features))  # of each node
        for position, level in enumerate(pairs.target_levels):
            of_edge = source[level.parent]
            log_probs = self._log_probs(features, position, of_edge, level)
            found[pairs.offsets[level.rows] + position] = log_probs[level.edge_of_row]
            source = of_edge[level.grows]
        return found

    def _features(self, sources: Phrases) -> Tensor:
        """Return the units (n, R) that the softmaxes read."""
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
        """Return log p of the words of edges, given the source phrase of each, ascending."""
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
