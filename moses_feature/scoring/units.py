"""The two recurrences of an encoder-decoder, a step at a time, for each kind of hidden unit.

K rows of a block, H hidden units, P products of one of them, W numbers of a state (`Sizes`), V
words, n source phrases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.scoring import elementwise
from moses_feature.scoring.product import Product, matrix


class UnitSteps(Protocol):
    """The steps for blocks of K rows; states are overwritten."""

    def encode(self, state: Tensor, word: Tensor) -> None:
        """Turn the encoder's states (K, W) into those after the words (K,)."""

    def decode(self, state: Tensor, word: Tensor, summaries: Tensor, source: Tensor) -> None:
        """Turn the decoder's states (K, W) into those after the words.

        Args:
            state: (K, W).
            word: (K,).
            summaries: (n, P H) C_z c, C_r c, C c.
            source: (K,) the source phrase of each row.
        """


@dataclass(frozen=True)
class FoldedGru:
    """The weights of gated units, embeddings folded in.

    Attributes:
        encoder_inputs: (source words, 3 H) W_z e(x), W_r e(x), W e(x) and the biases.
        decoder_inputs: (V, 3 H) the same of the decoder.
        encoder_gates: (H, 2 H) U_z, U_r.
        encoder_candidate: (H, H) U.
        decoder_state: (H, 3 H) U'_z, U'_r, U'.
    """

    encoder_inputs: Tensor
    decoder_inputs: Tensor
    encoder_gates: Tensor
    encoder_candidate: Tensor
    decoder_state: Tensor

    @classmethod
    def of(cls, network: EncoderDecoder, dtype: torch.dtype) -> FoldedGru:
        """Fold those of a network, with products of some type."""
        return cls(
            *_folded_inputs(network),
            matrix(network.encoder_gates, dtype),
            matrix(network.encoder_candidate, dtype),
            matrix(network.decoder_state, dtype),
        )

    def steps(self, rows: int) -> UnitSteps:
        """Return the steps, with buffers of their own."""
        return _GruSteps(self, rows)


class _GruSteps:
    def __init__(self, weights: FoldedGru, rows: int) -> None:
        self._weights = weights
        hidden = len(weights.encoder_candidate)
        self._reset = weights.encoder_inputs.new_empty(rows, hidden)
        self._encoder_gates = Product(weights.encoder_gates, rows)
        self._encoder_candidate = Product(weights.encoder_candidate, rows)
        self._decoder_state = Product(weights.decoder_state, rows)

    def encode(self, state: Tensor, word: Tensor) -> None:
        inputs, gates = self._weights.encoder_inputs, self._encoder_gates(state)
        elementwise.encoder_gates(gates, inputs, word, state, self._reset)
        candidate = self._encoder_candidate(self._reset)
        elementwise.encoder_state(gates, candidate, inputs, word, state)

    def decode(self, state: Tensor, word: Tensor, summaries: Tensor, source: Tensor) -> None:
        recurrent, inputs = self._decoder_state(state), self._weights.decoder_inputs
        elementwise.decoder_state(recurrent, inputs, word, summaries, source, state)


@dataclass(frozen=True)
class FoldedUnits:
    """The weights of units without a reset gate, embeddings folded in.

    Attributes:
        encoder_inputs: (source words, P H) the products of each word, and the biases.
        decoder_inputs: (V, P H) the same of the decoder.
        encoder_state, decoder_state: (H, P H).
        rates: (H,) of the encoder's leaky units and of the decoder's; nothing of LSTM.
    """

    encoder_inputs: Tensor
    decoder_inputs: Tensor
    encoder_state: Tensor
    decoder_state: Tensor
    rates: tuple[Tensor, ...]

    @classmethod
    def of(cls, network: EncoderDecoder, dtype: torch.dtype) -> FoldedUnits:
        """Fold those of a network, with products of some type."""
        states = matrix(network.encoder_state, dtype), matrix(network.decoder_state, dtype)
        return cls(*_folded_inputs(network), *states, network.rates)

    def steps(self, rows: int) -> UnitSteps:
        """Return the steps, with buffers of their own."""
        return _PlainSteps(self, rows)


class _PlainSteps:
    def __init__(self, weights: FoldedUnits, rows: int) -> None:
        self._weights = weights
        self._encoder_state = Product(weights.encoder_state, rows)
        self._decoder_state = Product(weights.decoder_state, rows)
        self._do = elementwise.leaky_state if weights.rates else elementwise.lstm_state
        encoder, decoder = ((rate,) for rate in weights.rates) if weights.rates else ((), ())
        self._encoder_rate, self._decoder_rate = encoder, decoder
        # The encoder has no summary: that of the only source phrase is zero.
        self._nothing = torch.zeros_like(weights.encoder_inputs[:1])
        self._no_source = self._nothing.new_zeros(rows, dtype=torch.int64)

    def encode(self, state: Tensor, word: Tensor) -> None:
        products = self._encoder_state(state[:, : self._hidden])
        of_word = self._weights.encoder_inputs, word
        self._do(products, *of_word, self._nothing, self._no_source, *self._encoder_rate, state)

    def decode(self, state: Tensor, word: Tensor, summaries: Tensor, source: Tensor) -> None:
        products = self._decoder_state(state[:, : self._hidden])
        of_word = self._weights.decoder_inputs, word
        self._do(products, *of_word, summaries, source, *self._decoder_rate, state)

    @property
    def _hidden(self) -> int:
        return len(self._weights.encoder_state)


def _folded_inputs(network: EncoderDecoder) -> tuple[Tensor, Tensor]:
    return (
        network.encoder_input(network.source_embedding.weight),
        network.decoder_input(network.target_embedding.weight),
    )
