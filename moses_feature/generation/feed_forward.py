"""Prefixes of targets that a feed-forward network is writing, and what may come next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from moses_feature.arrays import Floats, Integers
from moses_feature.generation.blocks import in_blocks
from moses_feature.models.feed_forward import FeedForwardNetwork
from moses_feature.models.phrases import Phrases
from moses_feature.models.vocabulary import END


@dataclass(frozen=True)
class FeedForwardPrefixes:
    """N prefixes of targets, all of the same length; see `Prefixes`.

    Attributes:
        network: what writes them.
        features: (n, R) its last layer but one, for each source phrase.
        source: (N,) the source phrase of each prefix.
        position: the words of each.
    """

    network: FeedForwardNetwork
    features: Tensor
    source: Integers
    position: int = 0

    @classmethod
    @torch.inference_mode()
    def empty(
        cls, network: FeedForwardNetwork, sources: Sequence[Sequence[int]]
    ) -> FeedForwardPrefixes:
        """Return an empty prefix of a target for each source phrase, given as ids."""
        every = np.arange(len(sources))
        words, _ = Phrases.pack(sources).padded(every, END)
        read, network = torch.from_numpy(words), network.eval()
        (features,) = in_blocks(lambda rows: (network.features(read[rows]),), len(read))
        return cls(network, features, every)

    def log_probs(self) -> Floats:
        """Return log p (N, V), natural logs, of each word and END after each prefix."""
        sources, row = np.unique(self.source, return_inverse=True)
        found: Floats = self._of_sources(sources)[row]
        return found

    def best(self, count: int) -> tuple[Integers, Floats, Floats]:
        """Return the likeliest next words and log p of END; see `Prefixes`."""
        sources, row = np.unique(self.source, return_inverse=True)
        log_probs = torch.from_numpy(self._of_sources(sources))
        words = log_probs[:, END + 1 :]
        found = torch.topk(words, min(count, words.shape[1]), sorted=False)
        chosen = (found.indices + END + 1).numpy()[row]
        return chosen, found.values.numpy()[row], log_probs[:, END].numpy()[row]

    def grown(self, prefix: Integers, word: Integers) -> FeedForwardPrefixes:
        """Return longer prefixes: some of these, and a word after each, whatever it is."""
        del word
        return replace(self, source=self.source[prefix], position=self.position + 1)

    @torch.inference_mode()
    def _of_sources(self, sources: Integers) -> Floats:
        output = self.network.output_at(self.position)
        features = self.features[torch.from_numpy(sources)]
        (log_probs,) = in_blocks(
            lambda rows: (torch.log_softmax(output(features[rows]), 1),), len(features)
        )
        found: Floats = log_probs.double().numpy()
        return found
