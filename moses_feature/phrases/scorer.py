"""Score many phrase pairs at once: log p(target | source), end-of-phrase included.

For a network of the other direction, "source" here is the side that it reads.

On the CPU each thread works on its own block of rows: products of this size gain little from
several threads. On a GPU, and for units without a reset gate, the network's own `forward` scores
padded batches.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moses_feature.networks.architectures import ENCODER_DECODER, Dtype, architecture_with
from moses_feature.networks.computation import Computation
from moses_feature.networks.phrases import PackedSequences, phrases_of
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.encoder_decoder import EncoderDecoder
from moses_feature.phrases.encoder_decoder_scorer import EncoderDecoderScorer
from moses_feature.phrases.model import PhraseModel
from moses_feature.phrases.packing import (
    Packed,
    PackedPairs,
    Packer,
    WordPair,
)
from moses_feature.runtime.arrays import Integers
from moses_feature.runtime.errors import UsageError

THREADS_PER_HELPER = 4
GPU_HELPERS = max(1, min(4, (os.cpu_count() or 1) - 1))
PAIRS_TOGETHER = 2048
"""Phrase pairs that a GPU scores at once."""


@dataclass(frozen=True)
class Scores:
    """Scores of n phrase pairs, natural logs.

    Attributes:
        word_log_probs: (target words + n,) of every target word and END, pair after pair.
        offsets: (n + 1,) where the words of each pair begin.
        log_probs: (n,) log p(target | source), the sum over the words of a pair.
        unknown_source, unknown_target: (n,) words outside the shortlist on either side of the
            pairs as they were given.
    """

    word_log_probs: NDArray[np.float64]
    offsets: Integers
    log_probs: NDArray[np.float64]
    unknown_source: Integers
    unknown_target: Integers


class Scorer:
    """A network ready to score phrase pairs on a device.

    Attributes:
        packer: turns words into the networks' input.
        dtype: the type of the large products.
        helpers: how many packing processes can keep it busy.

    Args:
        network: the network that the packer packs for.
        packer: turns words into the networks' input.
        device: the device of the products.
        dtype: the type of the large products; all else is float32.
        threads: threads on a CPU; None for as many as PyTorch uses.
        normalised: whether log Z is subtracted.
    """

    def __init__(
        self,
        network: EncoderDecoder,
        packer: Packer,
        device: torch.device,
        dtype: Dtype = "float32",
        threads: int | None = None,
        *,
        normalised: bool = True,
    ) -> None:
        self.packer = packer
        self.dtype = dtype
        computation = Computation.by(threads, dtype, normalised)
        on_cpu = -(-computation.workers // THREADS_PER_HELPER)
        self.helpers = on_cpu if device.type == "cpu" else GPU_HELPERS
        self._network: _PairScorer
        if device.type == "cpu" and network.sizes.unit == "gru":
            self._network = EncoderDecoderScorer(network, computation)
        else:
            self._network = ForwardScorer(network, device, computation)

    def score(self, pairs: Sequence[WordPair]) -> Scores:
        """Score phrase pairs, given as source and target words.

        Raises:
            TypeError: a word that is not bytes; no vocabulary would have it.
        """
        if not all(isinstance(word, bytes) for pair in pairs for words in pair for word in words):
            raise TypeError("expected words in bytes; moses_feature.api takes text")
        return self.score_packed(self.packer.pack(pairs))

    @torch.inference_mode()
    def score_packed(self, packed: Packed) -> Scores:
        """Score phrase pairs that `packer` has packed."""
        offsets = packed.pairs.offsets
        word_log_probs = self._network.word_log_probs(packed.pairs)
        log_probs = (
            np.add.reduceat(word_log_probs, offsets[:-1]) if len(offsets) > 1 else np.zeros(0)
        )
        return Scores(
            word_log_probs, offsets, log_probs, packed.unknown_source, packed.unknown_target
        )


class _PairScorer(Protocol):
    def word_log_probs(self, pairs: PackedPairs) -> NDArray[np.float64]:
        """Return log p of every target word and END, pair after pair."""


class ForwardScorer:
    """Scores phrase pairs by the network's own `forward`: for a GPU, and to check the others."""

    def __init__(self, network: EncoderDecoder, device: torch.device, how: Computation) -> None:
        self._network = network.to(device).eval()
        self._device, self._how = device, how

    def word_log_probs(self, pairs: PackedPairs) -> NDArray[np.float64]:
        """Return log p of every target word and END, pair after pair."""
        sources = PackedSequences.pack(phrases_of(pairs.source_levels))
        lengths = np.diff(pairs.offsets) - 1
        targets = np.full((len(lengths), len(pairs.target_levels)), END)
        for position, level in enumerate(pairs.target_levels):
            targets[level.rows, position] = level.word[level.edge_of_row]
        found = np.empty(pairs.offsets[-1])
        ascending = np.argsort(lengths, kind="stable")
        for first in range(0, len(ascending), PAIRS_TOGETHER):
            rows = ascending[first : first + PAIRS_TOGETHER]
            width = lengths[rows[-1]] + 1
            words = pairs.offsets[rows][:, None] + np.arange(width)
            given = (
                *sources.padded(pairs.source_of_row[rows], END),
                targets[rows, :width],
                lengths[rows],
            )
            real = np.arange(width) <= lengths[rows][:, None]
            found[words[real]] = self._log_probs([torch.from_numpy(array) for array in given])
        return found

    @torch.inference_mode()
    def _log_probs(self, given: Sequence[Tensor]) -> NDArray[np.float64]:
        short = self._how.dtype != torch.float32
        with torch.autocast(self._device.type, self._how.dtype, enabled=short):
            log_probs, log_norms = self._network(*(tensor.to(self._device) for tensor in given))
        log_probs = log_probs.double() if self._how.normalised else log_probs.double() + log_norms
        return cast("NDArray[np.float64]", log_probs.cpu().numpy())


def scorer_of(
    model: PhraseModel,
    device: torch.device,
    dtype: Dtype = "float32",
    threads: int | None = None,
    *,
    normalised: bool = False,
) -> Scorer:
    """Return a scorer of phrase pairs for a model; see `Scorer`.

    Args:
        model: the network with its vocabularies.
        device: as for `Scorer`.
        dtype: as for `Scorer`.
        threads: as for `Scorer`.
        normalised: subtract log Z even if the network is self-normalised.

    Raises:
        UsageError: a network for sentences.
    """
    if not isinstance(model.network, EncoderDecoder):
        kind = architecture_with(model.network.sizes)
        raise UsageError(f"expected a network for phrases ({ENCODER_DECODER}), found {kind}")
    subtracts = normalised or not model.self_normalised
    return Scorer(model.network, packer_of(model), device, dtype, threads, normalised=subtracts)


def packer_of(model: PhraseModel) -> Packer:
    """Return the packer for a model."""
    return Packer(model.source, model.target, model.direction)


class Ensemble:
    """Several networks with the same shortlists; p of a word is the mean of theirs.

    Args:
        scorers: two or more.
    """

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        self._scorers = scorers
        self.helpers = scorers[0].helpers

    def score_packed(self, packed: Packed) -> Scores:
        """Score phrase pairs that one of the packers has packed; see `Scorer`."""
        found = [scorer.score_packed(packed) for scorer in self._scorers]
        words = np.logaddexp.reduce([scores.word_log_probs for scores in found])
        words -= math.log(len(found))
        first = found[0]
        log_probs = np.add.reduceat(words, first.offsets[:-1]) if len(first.log_probs) else words
        return replace(first, word_log_probs=words, log_probs=log_probs)


AnyScorer = Scorer | Ensemble
