"""Prefixes of targets that an encoder-decoder is writing, and what may come next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from moses_feature.arrays import Floats, Integers
from moses_feature.generation.blocks import ROWS, in_blocks
from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.models.phrases import Phrases
from moses_feature.models.vocabulary import END
from moses_feature.scoring.steps import FoldedNetwork, Sources, Steps

CPU = torch.device("cpu")


class PhraseWriter:
    """An encoder-decoder that writes targets, on the CPU."""

    def __init__(self, network: EncoderDecoder) -> None:
        output = network.output_words
        self.state = network.sizes.state
        self.output = output.weight.detach().t().contiguous()
        self.output_bias = output.bias.detach()
        self.steps = Steps(FoldedNetwork.of(network, torch.float32), ROWS)

    @torch.inference_mode()
    def summaries(self, sources: Sequence[Sequence[int]]) -> Sources:
        """Read source phrases, given as ids."""
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
            # the steps write their next results to the same place
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
        writer: whose they are.
        sources: the source phrases.
        states: (n, W) of the decoder before the last words.
        state: (N,) the state of each prefix.
        source: (N,) the source phrase of each.
        last: (N,) the last words, END of an empty prefix.
    """

    writer: PhraseWriter
    sources: Sources
    states: Tensor
    state: Tensor
    source: Tensor
    last: Tensor

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
        """Return what comes of the logits (ROWS, V) of the next words, block by block."""
        writer, features = self.writer, self._decoded[1]
        return in_blocks(
            lambda rows: work(torch.addmm(writer.output_bias, features[rows], writer.output)),
            len(features),
        )

    @cached_property
    @torch.inference_mode()
    def _decoded(self) -> tuple[Tensor, ...]:
        """The states (N, H) after the last words, and G_r s (N, R) of the next ones."""
        writer = self.writer

        def decode(rows: Tensor) -> tuple[Tensor, ...]:
            state, features = writer.steps.decode(
                self.states, self.sources, self.state[rows], self.last[rows], self.source[rows]
            )
            return state.clone(), features.clone()

        return in_blocks(decode, len(self.last))

    def grown(self, prefix: Integers, word: Integers) -> PhrasePrefixes:
        """Return longer prefixes: some of these, and a word after each."""
        rows, states = torch.from_numpy(prefix), self._decoded[0]
        last = torch.from_numpy(word)
        return PhrasePrefixes(self.writer, self.sources, states, rows, self.source[rows], last)
