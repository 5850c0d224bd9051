"""One step of an encoder-decoder for a block of rows: the matrix products and what follows them.

The products of embeddings are folded into tables once per model; those of the summary c are
computed once per source phrase.

A block always has the same number of rows K (the last one is padded): the numeric library then sums
each row in the same order, so the score of a pair does not depend on the pairs beside it, to the
bit.

In the comments: H hidden units, P products of one of them, W numbers of a state (`Sizes`), S maxout
units, R output rank, V target words, n source phrases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from moses_feature.networks import computation as elementwise
from moses_feature.networks.computation import Product, matrix
from moses_feature.networks.output_layer import OutputLayer, OutputWeights
from moses_feature.phrases.encoder_decoder import EncoderDecoder


class UnitSteps(Protocol):
    """The recurrent steps for blocks of K rows; states are overwritten."""

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
    """The weights of gated units (GRU), embeddings folded in.

    Attributes:
        encoder_inputs: (source words, 3 H) W_z e(x), W_r e(x), W e(x) and the biases.
        decoder_inputs: (V, 3 H) the same for the decoder.
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
        """Fold the weights of a network, for products in a type."""
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
        decoder_inputs: (V, P H) the same for the decoder.
        encoder_state, decoder_state: (H, P H).
        rates: (H,) of the encoder's leaky units and of the decoder's; empty for LSTM.
    """

    encoder_inputs: Tensor
    decoder_inputs: Tensor
    encoder_state: Tensor
    decoder_state: Tensor
    rates: tuple[Tensor, ...]

    @classmethod
    def of(cls, network: EncoderDecoder, dtype: torch.dtype) -> FoldedUnits:
        """Fold the weights of a network, for products in a type."""
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
        # The encoder has no summary: it is given a single source phrase with a zero summary.
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


@dataclass(frozen=True)
class FoldedNetwork:
    """The weights of a network as the steps need them, transposed, embeddings folded in.

    Attributes:
        units: the weights of the two recurrences.
        maxout_inputs: (V, 2 S) O_y e(y) and the bias.
        summary_bias: (H,) of V.
        decoder_start_bias: (W,) of V'.
        summary: (H, H) V.
        decoder_start: (H, W) V'.
        decoder_summary: (H, P H) C_z, C_r, C.
        maxout_summary: (H, 2 S) O_c.
        maxout_state: (H, 2 S) O_h.
        output_rank: (S, R) G_r, always float32.
        output: G_l and its bias.
    """

    units: FoldedGru | FoldedUnits
    maxout_inputs: Tensor
    summary_bias: Tensor
    decoder_start_bias: Tensor
    summary: Tensor
    decoder_start: Tensor
    decoder_summary: Tensor
    maxout_summary: Tensor
    maxout_state: Tensor
    output_rank: Tensor
    output: OutputWeights

    @classmethod
    @torch.no_grad()
    def of(
        cls, network: EncoderDecoder, dtype: torch.dtype, normalised: bool = True
    ) -> FoldedNetwork:
        """Fold a network.

        Args:
            network: the network.
            dtype: the type of the large products.
            normalised: whether log Z is subtracted.
        """
        units = FoldedGru if network.sizes.unit == "gru" else FoldedUnits
        maxout_inputs = network.maxout_input(network.target_embedding.weight)
        maxout_inputs += network.maxout_state.bias
        output = network.output_words

        return cls(
            units=units.of(network, dtype),
            maxout_inputs=maxout_inputs,
            summary_bias=network.summary.bias.detach(),
            decoder_start_bias=network.decoder_start.bias.detach(),
            summary=matrix(network.summary, dtype),
            decoder_start=matrix(network.decoder_start, dtype),
            decoder_summary=matrix(network.decoder_summary, dtype),
            maxout_summary=matrix(network.maxout_summary, dtype),
            maxout_state=matrix(network.maxout_state, dtype),
            output_rank=network.output_rank.weight.detach().t(),
            output=OutputWeights.of(
                output.weight.detach(), output.bias.detach(), dtype, normalised
            ),
        )


@dataclass(frozen=True)
class Sources:
    """The decoder's inputs from n source phrases, computed once for each.

    start: (n, W) the first state; state: (n, P H) C_z c, C_r c, C c; maxout: (n, 2 S) O_c c.
    """

    start: Tensor
    state: Tensor
    maxout: Tensor


class Steps:
    """The steps for blocks of K rows, with buffers that each call overwrites: one per thread.

    Args:
        network: the weights.
        rows: K.
    """

    def __init__(self, network: FoldedNetwork, rows: int) -> None:
        self._network = network
        new = network.maxout_inputs.new_empty
        self._hidden = len(network.summary)
        self._state = new(rows, network.decoder_start.shape[1])
        self._maxout = new(rows, len(network.output_rank))
        self._units = network.units.steps(rows)
        self._summary = Product(network.summary, rows, network.summary_bias)
        self._decoder_start = Product(network.decoder_start, rows, network.decoder_start_bias)
        self._decoder_summary = Product(network.decoder_summary, rows)
        self._maxout_summary = Product(network.maxout_summary, rows)
        self._maxout_state = Product(network.maxout_state, rows)
        self._output_rank = Product(network.output_rank, rows)
        self._output = OutputLayer(network.output, rows)

    def encode(self, states: Tensor, parent: Tensor, word: Tensor) -> Tensor:
        """Return the encoder's states (K, W) after a word.

        Args:
            states: (n, W) the states before the word.
            parent: (K,) the row of `states` that each row continues.
            word: (K,) the word.
        """
        torch.index_select(states, 0, parent, out=self._state)
        self._units.encode(self._state, word)
        return self._state

    def summarise(self, states: Tensor, row: Tensor) -> Sources:
        """Return the decoder's inputs from K source phrases.

        Args:
            states: (n, W) the encoder's last states.
            row: (K,) rows of `states`.
        """
        torch.index_select(states, 0, row, out=self._state)
        c = self._summary(self._state[:, : self._hidden])
        elementwise.tanh_in_place(c)
        start = self._decoder_start(c)
        elementwise.tanh_in_place(start)
        return Sources(start, self._decoder_summary(c), self._maxout_summary(c))

    def decode(
        self, states: Tensor, sources: Sources, parent: Tensor, word: Tensor, source: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the decoder's states (K, W) after a word, and G_r s (K, R) of the next one.

        Args:
            states: (n, W) the states before the word.
            sources: the source phrases.
            parent: (K,) the row of `states` that each row continues.
            word: (K,) the word.
            source: (K,) the source phrase of each row.
        """
        network, state = self._network, self._state
        torch.index_select(states, 0, parent, out=state)
        self._units.decode(state, word, sources.state, source)
        elementwise.maxout(
            self._maxout_state(state[:, : self._hidden]),
            network.maxout_inputs,
            word,
            sources.maxout,
            source,
            self._maxout,
        )
        return state, self._output_rank(self._maxout)

    def log_probs(self, features: Tensor, row: Tensor, word: Tensor) -> Tensor:
        """Return log p (edges,) of single words.

        Args:
            features: (K, R) G_r s.
            row: (edges,) the row of `features` from which each word is predicted.
            word: (edges,) the words.
        """
        return self._output(features, row, word)
