"""One step of an encoder-decoder of gated units for a block of rows: products and what follows.

The products of embeddings are folded into tables once per model; those of the summary c are
computed once per source phrase.

A block always has the same number of rows K (the last one is padded): the numeric library then sums
each row in the same order, so the score of a pair does not depend on the pairs beside it, to the
bit.

In the comments: H hidden units, S maxout units, R output rank, V target words, n source phrases.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from moses_feature.networks import computation as elementwise
from moses_feature.networks.computation import Product, matrix
from moses_feature.networks.output_layer import OutputLayer, OutputWeights
from moses_feature.phrases.encoder_decoder import EncoderDecoder, Summarised


@dataclass(frozen=True)
class FoldedNetwork:
    """The weights of a network as the steps need them, transposed, embeddings folded in.

    Attributes:
        encoder_inputs: (source words, 3 H) W_z e(x), W_r e(x), W e(x) and the biases.
        decoder_inputs: (V, 3 H) the same for the decoder.
        encoder_gates: (H, 2 H) U_z, U_r.
        encoder_candidate: (H, H) U.
        decoder_state: (H, 3 H) U'_z, U'_r, U'.
        maxout_inputs: (V, 2 S) O_y e(y) and the bias.
        summary_bias: (H,) of V.
        decoder_start_bias: (H,) of V'.
        summary: (H, H) V.
        decoder_start: (H, H) V'.
        decoder_summary: (H, 3 H) C_z, C_r, C.
        maxout_summary: (H, 2 S) O_c.
        maxout_state: (H, 2 S) O_h.
        output_rank: (S, R) G_r, always float32.
        output: G_l and its bias.
    """

    encoder_inputs: Tensor
    decoder_inputs: Tensor
    encoder_gates: Tensor
    encoder_candidate: Tensor
    decoder_state: Tensor
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
        """Fold a network of gated units.

        Args:
            network: the network.
            dtype: the type of the large products.
            normalised: whether log Z is subtracted.
        """
        maxout_inputs = network.maxout_input(network.target_embedding.weight)
        maxout_inputs += network.maxout_state.bias
        output = network.output_words
        return cls(
            encoder_inputs=network.encoder_input(network.source_embedding.weight),
            decoder_inputs=network.decoder_input(network.target_embedding.weight),
            encoder_gates=matrix(network.encoder_gates, dtype),
            encoder_candidate=matrix(network.encoder_candidate, dtype),
            decoder_state=matrix(network.decoder_state, dtype),
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


class Steps:
    """The steps for blocks of K rows, with buffers that each call overwrites: one per thread.

    Args:
        network: the weights.
        rows: K.
    """

    def __init__(self, network: FoldedNetwork, rows: int) -> None:
        self._network = network
        new = network.maxout_inputs.new_empty
        self._state = new(rows, len(network.summary))
        self._reset = new(rows, len(network.summary))
        self._maxout = new(rows, len(network.output_rank))
        self._encoder_gates = Product(network.encoder_gates, rows)
        self._encoder_candidate = Product(network.encoder_candidate, rows)
        self._decoder_state = Product(network.decoder_state, rows)
        self._summary = Product(network.summary, rows, network.summary_bias)
        self._decoder_start = Product(network.decoder_start, rows, network.decoder_start_bias)
        self._decoder_summary = Product(network.decoder_summary, rows)
        self._maxout_summary = Product(network.maxout_summary, rows)
        self._maxout_state = Product(network.maxout_state, rows)
        self._output_rank = Product(network.output_rank, rows)
        self._output = OutputLayer(network.output, rows)

    def encode(self, states: Tensor, parent: Tensor, word: Tensor) -> Tensor:
        """Return the encoder's states (K, H) after a word.

        Args:
            states: (n, H) the states before the word.
            parent: (K,) the row of `states` that each row continues.
            word: (K,) the word.
        """
        state, inputs = self._state, self._network.encoder_inputs
        torch.index_select(states, 0, parent, out=state)
        gates = self._encoder_gates(state)
        elementwise.encoder_gates(gates, inputs, word, state, self._reset)
        candidate = self._encoder_candidate(self._reset)
        elementwise.encoder_state(gates, candidate, inputs, word, state)
        return state

    def summarise(self, states: Tensor, row: Tensor) -> Summarised:
        """Return the decoder's inputs from K source phrases.

        Args:
            states: (n, H) the encoder's last states.
            row: (K,) rows of `states`.
        """
        torch.index_select(states, 0, row, out=self._state)
        c = self._summary(self._state)
        elementwise.tanh_in_place(c)
        start = self._decoder_start(c)
        elementwise.tanh_in_place(start)
        return Summarised(start, self._decoder_summary(c), self._maxout_summary(c))

    def decode(
        self, states: Tensor, sources: Summarised, parent: Tensor, word: Tensor, source: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the decoder's states (K, H) after a word, and G_r s (K, R) of the next one.

        Args:
            states: (n, H) the states before the word.
            sources: the source phrases.
            parent: (K,) the row of `states` that each row continues.
            word: (K,) the word.
            source: (K,) the source phrase of each row.
        """
        network, state = self._network, self._state
        torch.index_select(states, 0, parent, out=state)
        recurrent, inputs = self._decoder_state(state), network.decoder_inputs
        elementwise.decoder_state(recurrent, inputs, word, sources.state, source, state)
        elementwise.maxout(
            self._maxout_state(state),
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
