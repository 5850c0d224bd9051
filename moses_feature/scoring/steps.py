"""One step of the network for a block of rows: the products and what follows them.

The products of embeddings are folded into tables once per model, those of the summary c are
computed once per source phrase.

A block has the same number of rows K whatever there is to score (the last one is padded): the
numeric library then sums each row in the same order, and the score of a pair does not depend on
the pairs beside it, to the bit.

In the comments: H hidden units, S maxout units, R output rank, V target words.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.scoring.elementwise import Elementwise
from moses_feature.scoring.output_layer import OutputLayer, OutputWeights


@dataclass(frozen=True)
class FoldedNetwork:
    """The weights of a network as the steps need them, transposed, embeddings folded in.

    Attributes:
        encoder_inputs: (source words, 3 H) W_z e(x), W_r e(x), W e(x) and the biases.
        decoder_inputs: (V, 3 H) the same of the decoder.
        maxout_inputs: (V, 2 S) O_y e(y) and the bias.
        summary_bias, decoder_start_bias: (H,) of V and V'.
        encoder_gates: (H, 2 H) U_z, U_r.
        encoder_candidate: (H, H) U.
        summary, decoder_start: (H, H) V and V'.
        decoder_summary: (H, 3 H) C_z, C_r, C.
        maxout_summary: (H, 2 S) O_c.
        decoder_state: (H, 3 H) U'_z, U'_r, U'.
        maxout_state: (H, 2 S) O_h.
        output_rank: (S, R) G_r, always float32.
        output: G_l and its bias.
    """

    encoder_inputs: Tensor
    decoder_inputs: Tensor
    maxout_inputs: Tensor
    summary_bias: Tensor
    decoder_start_bias: Tensor
    encoder_gates: Tensor
    encoder_candidate: Tensor
    summary: Tensor
    decoder_start: Tensor
    decoder_summary: Tensor
    maxout_summary: Tensor
    decoder_state: Tensor
    maxout_state: Tensor
    output_rank: Tensor
    output: OutputWeights

    @classmethod
    @torch.no_grad()
    def of(
        cls, network: EncoderDecoder, dtype: torch.dtype, words: int, normalised: bool = True
    ) -> FoldedNetwork:
        """Fold a network, on the device where it is.

        Args:
            network: the network.
            dtype: of the large products.
            words: how many words' logits are to be computed together.
            normalised: whether log Z is subtracted.
        """
        maxout_inputs = network.maxout_input(network.target_embedding.weight)
        maxout_inputs += network.maxout_state.bias
        output = network.output_words

        def matrix(layer: nn.Linear) -> Tensor:
            return layer.weight.detach().t().to(dtype)

        return cls(
            encoder_inputs=network.encoder_input(network.source_embedding.weight),
            decoder_inputs=network.decoder_input(network.target_embedding.weight),
            maxout_inputs=maxout_inputs,
            summary_bias=network.summary.bias.detach(),
            decoder_start_bias=network.decoder_start.bias.detach(),
            encoder_gates=matrix(network.encoder_gates),
            encoder_candidate=matrix(network.encoder_candidate),
            summary=matrix(network.summary),
            decoder_start=matrix(network.decoder_start),
            decoder_summary=matrix(network.decoder_summary),
            maxout_summary=matrix(network.maxout_summary),
            decoder_state=matrix(network.decoder_state),
            maxout_state=matrix(network.maxout_state),
            output_rank=network.output_rank.weight.detach().t(),
            output=OutputWeights.of(
                output.weight.detach(), output.bias.detach(), dtype, words, normalised
            ),
        )


@dataclass(frozen=True)
class Sources:
    """What the decoder needs of n source phrases, computed once for each.

    start: (n, H) h'_0; state: (n, 3 H) C_z c, C_r c, C c; maxout: (n, 2 S) O_c c.
    """

    start: Tensor
    state: Tensor
    maxout: Tensor


class Product:
    """x W + b for blocks of K rows, b optional; the result is float32 and overwritten each time."""

    def __init__(self, weight: Tensor, rows: int, bias: Tensor | None = None) -> None:
        self._weight = weight
        self._bias = bias
        shape = (rows, weight.shape[1])
        self.result = weight.new_empty(shape, dtype=torch.float32)
        self._short = weight.dtype != torch.float32
        if self._short:
            self._operand = weight.new_empty(rows, weight.shape[0])
            self._short_result = weight.new_empty(shape)

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply (K, ·), float32, with the weights in their own type."""
        if self._short:
            self._operand.copy_(x)
            torch.mm(self._operand, self._weight, out=self._short_result)
            self.result.copy_(self._short_result)
        else:
            torch.mm(x, self._weight, out=self.result)
        if self._bias is not None:
            self.result += self._bias
        return self.result


class Steps:
    """The steps for blocks of K rows, with buffers that each call overwrites: one per thread.

    Args:
        network: the weights.
        rows: K.
        elementwise: how to compute what follows the products.
    """

    def __init__(self, network: FoldedNetwork, rows: int, elementwise: Elementwise) -> None:
        self._network = network
        self._do = elementwise
        hidden = len(network.encoder_candidate)
        self._state = network.encoder_inputs.new_empty(rows, hidden)
        self._reset = network.encoder_inputs.new_empty(rows, hidden)
        self._units = network.encoder_inputs.new_empty(rows, len(network.output_rank))
        self._encoder_gates = Product(network.encoder_gates, rows)
        self._encoder_candidate = Product(network.encoder_candidate, rows)
        self._summary = Product(network.summary, rows, network.summary_bias)
        self._decoder_start = Product(network.decoder_start, rows, network.decoder_start_bias)
        self._decoder_summary = Product(network.decoder_summary, rows)
        self._maxout_summary = Product(network.maxout_summary, rows)
        self._decoder_state = Product(network.decoder_state, rows)
        self._maxout_state = Product(network.maxout_state, rows)
        self._output_rank = Product(network.output_rank, rows)
        self._output = OutputLayer(network.output, rows, elementwise)

    def encode(self, states: Tensor, parent: Tensor, word: Tensor) -> Tensor:
        """Return the encoder's states (K, H) after a word.

        Args:
            states: (n, H) before it.
            parent: (K,) which of them each row goes on from.
            word: (K,).
        """
        inputs, state = self._network.encoder_inputs, self._state
        torch.index_select(states, 0, parent, out=state)
        gates = self._encoder_gates(state)
        self._do.encoder_gates(gates, inputs, word, state, self._reset)
        candidate = self._encoder_candidate(self._reset)
        self._do.encoder_state(gates, candidate, inputs, word, state)
        return state

    def summarise(self, states: Tensor, row: Tensor) -> Sources:
        """Return what the decoder needs of K source phrases.

        Args:
            states: (n, H) the encoder's last ones.
            row: (K,) which of them.
        """
        torch.index_select(states, 0, row, out=self._state)
        c = self._summary(self._state)
        self._do.tanh_in_place(c)
        start = self._decoder_start(c)
        self._do.tanh_in_place(start)
        return Sources(start, self._decoder_summary(c), self._maxout_summary(c))

    def decode(
        self, states: Tensor, sources: Sources, parent: Tensor, word: Tensor, source: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the decoder's states (K, H) after a word, and G_r s (K, R) of the next one.

        Args:
            states: (n, H) before it.
            sources: of the source phrases.
            parent: (K,) which of the states each row goes on from.
            word: (K,).
            source: (K,) which of the source phrases each row belongs to.
        """
        network, state = self._network, self._state
        torch.index_select(states, 0, parent, out=state)
        self._do.decoder_state(
            self._decoder_state(state), network.decoder_inputs, word, sources.state, source, state
        )
        self._do.maxout(
            self._maxout_state(state),
            network.maxout_inputs,
            word,
            sources.maxout,
            source,
            self._units,
        )
        return state, self._output_rank(self._units)

    def log_probs(self, features: Tensor, row: Tensor, word: Tensor) -> Tensor:
        """Return log p (edges,) of single words.

        Args:
            features: (K, R) G_r s.
            row: (edges,) which of the rows each word comes next in.
            word: (edges,).
        """
        return self._output(features, row, word)
