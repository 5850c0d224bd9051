"""Networks for phrases as generators of targets, on the CPU.

All work on rows is done in blocks of the same size, so that no row depends on those beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from moses_feature.networks.phrases import Phrases
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.encoder_decoder import EncoderDecoder
from moses_feature.phrases.feed_forward import FeedForwardNetwork
from moses_feature.phrases.generation.prefixes import EmptyPrefixes
from moses_feature.phrases.model import PhraseModel, load_model
from moses_feature.phrases.steps import FoldedNetwork, Sources, Steps
from moses_feature.runtime.arrays import Floats, Integers

ROWS = 64
"""The fixed number of prefixes, or source phrases, of a block."""


def in_blocks(work: Callable[[Tensor], tuple[Tensor, ...]], count: int) -> tuple[Tensor, ...]:
    """Run `work` on blocks of ROWS row numbers, the last one padded; join the results."""
    blocks = [
        work(torch.arange(first, first + ROWS).clamp(max=count - 1))
        for first in range(0, count, ROWS)
    ]
    return tuple(torch.cat(parts)[:count] for parts in zip(*blocks, strict=True))


class PhraseWriter:
    """An encoder-decoder as a generator of targets, on the CPU."""

    def __init__(self, network: EncoderDecoder) -> None:
        output = network.output_words
        self.state = network.sizes.state
        self.output = output.weight.detach().t().contiguous()
        self.output_bias = output.bias.detach()
        self.steps = Steps(FoldedNetwork.of(network, torch.float32), ROWS)

    @torch.inference_mode()
    def summaries(self, sources: Sequence[Sequence[int]]) -> Sources:
        """Encode source phrases, given as ids."""
        phrases = Phrases.pack(sources)
        lengths = np.diff(phrases.offsets)
        words, _ = phrases.padded(np.arange(len(sources)), END)

        def read(rows: Tensor) -> tuple[Tensor, ...]:
            mine = words[rows]
            states, last = torch.zeros(ROWS, self.state), torch.zeros(ROWS, self.state)
            for place in range(int(lengths[rows].max()) + 1):
                word = torch.from_numpy(mine[:, place].astype(np.int64))
                states = self.steps.encode(states, torch.arange(ROWS), word).clone()
                ended = torch.from_numpy(lengths[rows] == place)
                last[ended] = states[ended]
            read = self.steps.summarise(last, torch.arange(ROWS))
            # clone: the next step writes its results into the same memory
            return read.start.clone(), read.state.clone(), read.maxout.clone()

        return Sources(*in_blocks(read, len(sources)))

    def empty(self, sources: Sequence[Sequence[int]]) -> PhrasePrefixes:
        """Return an empty prefix of a target for each source phrase, one at least."""
        read, every = self.summaries(sources), torch.arange(len(sources))
        return PhrasePrefixes(self, read, read.start, every, every, torch.full_like(every, END))


@dataclass
class PhrasePrefixes:
    """N prefixes of targets; see `Prefixes`.

    Attributes:
        writer: the generator.
        sources: the encoded source phrases.
        states: (n, W) decoder states before the last words.
        state: (N,) the state of each prefix.
        source: (N,) the source phrase of each prefix.
        last: (N,) the last words, END for an empty prefix.
    """

    writer: PhraseWriter
    sources: Sources
    states: Tensor
    state: Tensor
    source: Tensor
    last: Tensor

    alignments = None

    def log_probs(self) -> Floats:
        """Return log p (N, V), natural logs, of each word and END after each prefix."""
        (log_probs,) = self._of_logits(lambda logits: (torch.log_softmax(logits, 1),))
        found: Floats = log_probs.double().numpy()
        return found

    def best(self, count: int) -> tuple[Integers, Floats, Floats]:
        """Return the likeliest next words and log p of END; see `Prefixes`."""

        def choose(logits: Tensor) -> tuple[Tensor, ...]:
            sums = torch.logsumexp(logits, 1, keepdim=True)
            words = logits[:, END + 1 :]
            found = torch.topk(words, min(count, words.shape[1]), sorted=False)
            return found.indices + END + 1, found.values - sums, logits[:, END] - sums[:, 0]

        words, log_probs, end = (tensor.numpy() for tensor in self._of_logits(choose))
        return words, log_probs.astype(np.float64), end.astype(np.float64)

    @torch.inference_mode()
    def _of_logits(self, work: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """Return the results of `work` on the logits (ROWS, V) of the next words, by blocks."""
        writer, features = self.writer, self._decoded[1]
        return in_blocks(
            lambda rows: work(torch.addmm(writer.output_bias, features[rows], writer.output)),
            len(features),
        )

    @cached_property
    @torch.inference_mode()
    def _decoded(self) -> tuple[Tensor, ...]:
        """The states (N, W) after the last words, and G_r s (N, R) of the next ones."""
        writer = self.writer

        def decode(rows: Tensor) -> tuple[Tensor, ...]:
            state, features = writer.steps.decode(
                self.states, self.sources, self.state[rows], self.last[rows], self.source[rows]
            )
            return state.clone(), features.clone()

        return in_blocks(decode, len(self.last))

    def grown(self, prefix: Integers, word: Integers) -> PhrasePrefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""
        rows, states = torch.from_numpy(prefix), self._decoded[0]
        last = torch.from_numpy(word)
        return PhrasePrefixes(self.writer, self.sources, states, rows, self.source[rows], last)


@dataclass(frozen=True)
class FeedForwardPrefixes:
    """N prefixes of targets, all of the same length; see `Prefixes`.

    Attributes:
        network: the network that writes them.
        features: (n, R) the units of the last layer before the softmax, for each source phrase.
        source: (N,) the source phrase of each prefix.
        position: the number of words of each prefix.
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

    alignments = None

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
        """Return longer prefixes; the appended words have no influence on the next ones."""
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


def encoder_decoder_writer(directory: Path) -> tuple[PhraseModel, EmptyPrefixes]:
    """Read an encoder-decoder; return it with a function that makes empty prefixes."""
    model = load_model(directory)
    return model, PhraseWriter(cast(EncoderDecoder, model.network)).empty


def feed_forward_writer(directory: Path) -> tuple[PhraseModel, EmptyPrefixes]:
    """Read a feed-forward network; return it with a function that makes empty prefixes."""
    model = load_model(directory)
    network = cast(FeedForwardNetwork, model.network)
    return model, partial(FeedForwardPrefixes.empty, network)
