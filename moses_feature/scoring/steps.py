"""One step of the network for a block of rows: the products and what follows them.

The products of embeddings are folded into tables once per model, those of the summary c are
computed once per source phrase.

A block has the same number of rows K whatever there is to score (the last one is padded): the
numeric library then sums each row in the same order, and the score of a pair does not depend on
the pairs beside it, to the bit.

In the comments: H hidden units, K products of one of them, W numbers of a state (`Sizes`), S maxout
units, R output rank, V target words.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from moses_feature.models.encoder_decoder import EncoderDecoder
from moses_feature.scoring import elementwise
from moses_feature.scoring.output_layer import OutputLayer, OutputWeights
from moses_feature.scoring.product import Product, matrix
from moses_feature.scoring.units import FoldedGru, FoldedUnits


@dataclass(frozen=True)
class FoldedNetwork:
    """The weights of a network as the steps need them, transposed, embeddings folded in.

    Attributes:
        units: what the two recurrences need.
        maxout_inputs: (V, 2 S) O_y e(y) and the bias.
        summary_bias: (H,) of V.
        decoder_start_bias: (W,) of V'.
        summary: (H, H) V.
        decoder_start: (H, W) V'.
        decoder_summary: (H, K H) C_z, C_r, C.
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
            dtype: of the large products.
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
    """What the decoder needs of n source phrases, computed once for each.

    start: (n, W) the first state; state: (n, K H) C_z c, C_r c, C c; maxout: (n, 2 S) O_c c.
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
            states: (n, W) before it.
            parent: (K,) which of them each row goes on from.
            word: (K,).
        """
        torch.index_select(states, 0, parent, out=self._state)
        self._units.encode(self._state, word)
        return self._state

    def summarise(self, states: Tensor, row: Tensor) -> Sources:
        """Return what the decoder needs of K source phrases.

        Args:
            states: (n, W) the encoder's last ones.
            row: (K,) which of them.
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
            states: (n, W) before it.
            sources: of the source phrases.
            parent: (K,) which of the states each row goes on from.
            word: (K,).
            source: (K,) which of the source phrases each row belongs to.
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
            row: (edges,) which of the rows each word comes next in.
            word: (edges,).
        """
        return self._output(features, row, word)
