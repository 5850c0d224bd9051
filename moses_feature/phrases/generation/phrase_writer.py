"""The encoder-decoder as a generator of targets, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch

from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.encoder_decoder import EncoderDecoder, Summarised
from moses_feature.phrases.generation.prefixes import EmptyPrefixes
from moses_feature.phrases.model import PhraseModel, load_model
from moses_feature.runtime.arrays import Floats, Integers


class PhraseWriter:
    """An encoder-decoder as a generator of targets, on the CPU."""

    def __init__(self, network: EncoderDecoder) -> None:
        self._network = network.eval()

    @torch.inference_mode()
    def empty(self, sources: Sequence[Sequence[int]]) -> PhrasePrefixes:
        """Return an empty prefix of a target for each source phrase, given as ids."""
        phrases, every = PackedSequences.pack(sources), np.arange(len(sources))
        words, lengths = map(torch.from_numpy, phrases.padded(every, END))
        read = self._network.summarised(self._network.encode(words, lengths))
        return PhrasePrefixes(self._network, read, np.full(len(every), END))


class PhrasePrefixes:
    """N prefixes of targets; see `Prefixes`.

    Args:
        network: the network that writes them.
        given: for each prefix, what the decoder takes from its source phrase, and the state before
            the last word.
        last: (N,) the last words, END for an empty prefix.
    """

    alignments = None

    @torch.inference_mode()
    def __init__(self, network: EncoderDecoder, given: Summarised, last: Integers) -> None:
        self._network, self._given = network, given
        states, features = network.decode(given, torch.from_numpy(last)[None])
        self._states = states[0]  # (N, W) after the last words
        self._logits = network.output_words(features[0])  # (N, V)

    @torch.inference_mode()
    def log_probs(self) -> Floats:
        """Return log p (N, V), natural logs, of each word and END after each prefix."""
        found: Floats = torch.log_softmax(self._logits, 1).double().numpy()
        return found

    @torch.inference_mode()
    def best(self, count: int) -> tuple[Integers, Floats, Floats]:
        """Return the likeliest next words and log p of END; see `Prefixes`."""
        sums = torch.logsumexp(self._logits, 1, keepdim=True)
        words = self._logits[:, END + 1 :]
        found = torch.topk(words, min(count, words.shape[1]), sorted=False)
        scores, end = found.values - sums, self._logits[:, END] - sums[:, 0]
        return (found.indices + END + 1).numpy(), scores.double().numpy(), end.double().numpy()

    @torch.inference_mode()
    def grown(self, prefix: Integers, word: Integers) -> PhrasePrefixes:
        """Return longer prefixes: the given ones of these, each with a word appended."""
        rows = torch.from_numpy(prefix)
        _, state, maxout = self._given
        given = Summarised(self._states[rows], state[rows], maxout[rows])
        return PhrasePrefixes(self._network, given, word)


def encoder_decoder_writer(directory: Path) -> tuple[PhraseModel, EmptyPrefixes]:
    """Read an encoder-decoder; return it with a function that makes empty prefixes."""
    model = load_model(directory)
    return model, PhraseWriter(cast(EncoderDecoder, model.network)).empty
