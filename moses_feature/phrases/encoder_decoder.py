"""The RNN Encoder-Decoder of Cho et al., EMNLP 2014 (section 2 and the supplement's section 1).

Axes: B phrase pairs, N source positions, M target positions, H hidden units, E embedding, S
maxout units, R output rank, V target words, K products of a hidden unit (3 of the paper's gated
ones), W numbers of a state (H, or 2 H of LSTM). In the comments e(x) and e(y) are embeddings, z
and r the update and reset gates, c the summary of the source phrase; a prime marks the decoder.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from moses_feature.networks.dropout import Dropout
from moses_feature.networks.pair_network import PairNetwork, draw_weights
from moses_feature.networks.recurrence import decoder_states, encoder_states, unit_states
from moses_feature.networks.softmax import word_terms
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_sample import WordSample
from moses_feature.phrases.settings import Sizes


class Summarised(NamedTuple):
    """What the decoder takes from B source phrases.

    start: (B, W) h'_0; state: (B, K H) C_z c, C_r c, C c; maxout: (B, 2 S) O_c c.
    """

    start: Tensor
    state: Tensor
    maxout: Tensor


class EncoderDecoder(PairNetwork):
    """p(target phrase | source phrase) as a product over the target words.

    The embedding of END, which stands for y_0, is zero and stays so. Dropout, which the paper
    does not have, zeroes random components of the embeddings and the maxout units in training and
    scales up the others.
    """

    sizes: Sizes

    def __init__(
        self, sizes: Sizes, source_words: int, target_words: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        hidden, embedding, maxout, rank = sizes.hidden, sizes.embedding, sizes.maxout, sizes.rank
        products = sizes.products * hidden
        self.sizes = sizes
        self.dropout = Dropout(dropout)
        self.source_embedding = nn.Embedding(source_words, embedding)
        self.target_embedding = nn.Embedding(target_words, embedding, padding_idx=END)
        # The rows of a product of size 3 H belong to z, r and the candidate state, in this order.
        self.encoder_input = nn.Linear(embedding, products)  # W_z, W_r, W and the biases
        if sizes.unit == "gru":
            self.encoder_gates = nn.Linear(hidden, 2 * hidden, bias=False)  # U_z, U_r
            self.encoder_candidate = nn.Linear(hidden, hidden, bias=False)  # U
        else:
            self.encoder_state = nn.Linear(hidden, products, bias=False)
        self.summary = nn.Linear(hidden, hidden)  # V
        self.decoder_start = nn.Linear(hidden, sizes.state)  # V'
        self.decoder_input = nn.Linear(embedding, products)  # W'_z, W'_r, W' and the biases
        self.decoder_state = nn.Linear(hidden, products, bias=False)  # U'_z, U'_r, U'
        self.decoder_summary = nn.Linear(hidden, products, bias=False)  # C_z, C_r, C
        self.maxout_state = nn.Linear(hidden, 2 * maxout)  # O_h and the bias
        self.maxout_input = nn.Linear(embedding, 2 * maxout, bias=False)  # O_y
        self.maxout_summary = nn.Linear(hidden, 2 * maxout, bias=False)  # O_c
        self.output_rank = nn.Linear(maxout, rank, bias=False)  # G_r
        self.output_words = nn.Linear(rank, target_words)  # G_l and the bias

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights as in section 4.1.1 of the paper; biases are zero.

        Weights are Gaussian with standard deviation 0.01; a recurrent matrix is the left singular
        vectors of a Gaussian matrix. LSTM forget gates begin open (bias 1; Jozefowicz, Zaremba and
        Sutskever 2015).
        """
        unit, hidden = self.sizes.unit, self.sizes.hidden
        if unit == "gru":
            recurrent = [self.encoder_gates, self.encoder_candidate, self.decoder_state]
        else:
            recurrent = [self.encoder_state, self.decoder_state]
        draw_weights(self, recurrent, self.target_embedding, generator)
        with torch.no_grad():
            if unit == "lstm":
                for layer in (self.encoder_input, self.decoder_input):
                    layer.bias[hidden : 2 * hidden] = 1

    def encode(self, source: Tensor, lengths: Tensor) -> Tensor:
        """Return the summaries c (B, H) of source phrases.

        Args:
            source: (B, N + 1) word ids, END after each phrase and behind it.
            lengths: (B,) words of each phrase, END not counted.
        """
        embedded = self.dropout(self.source_embedding(source.t()))
        inputs = self.encoder_input(embedded)  # (N + 1, B, K H)
        if self.sizes.unit == "gru":
            weights = self.encoder_gates.weight, self.encoder_candidate.weight
            states = encoder_states(inputs, *weights)
        else:
            start = inputs.new_zeros(len(source), self.sizes.state, dtype=torch.float32)
            nothing = inputs.new_zeros(inputs.shape[1:])
            weight = self.encoder_state.weight
            states = unit_states(inputs, start, nothing, weight)
        rows = torch.arange(len(source), device=source.device)
        return torch.tanh(self.summary(states[lengths, rows, : self.sizes.hidden]))

    def summarised(self, summary: Tensor) -> Summarised:
        """Return what the decoder takes from the summaries (B, H) of source phrases."""
        return Summarised(
            torch.tanh(self.decoder_start(summary)),
            self.decoder_summary(summary),
            self.maxout_summary(summary),
        )

    def decode(self, given: Summarised, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states (M, B, W) after words, and G_r s (M, B, R) of the next ones.

        Args:
            given: `start` is the state before the first of these words.
            previous: (M, B) ids of the words before each position, END first.
        """
        embedded = self.dropout(self.target_embedding(previous))  # (M, B, E)
        recur = decoder_states if self.sizes.unit == "gru" else unit_states
        states = recur(
            self.decoder_input(embedded), given.start, given.state, self.decoder_state.weight
        )
        pre_maxout = self.maxout_state(states[:, :, : self.sizes.hidden])
        pre_maxout = pre_maxout + self.maxout_input(embedded) + given.maxout  # (M, B, 2 S)
        maxout = torch.unflatten(pre_maxout, 2, (-1, 2)).amax(3)  # (M, B, S)
        return states, self.output_rank(self.dropout(maxout))

    def forward(
        self,
        source: Tensor,
        source_lengths: Tensor,
        target: Tensor,
        target_lengths: Tensor,
        sample: WordSample | None = None,
    ) -> tuple[Tensor, ...]:
        """Return log p and log Z of every target word, END included, pair after pair.

        Args:
            source: (B, N + 1) word ids, END after each phrase and behind it.
            source_lengths: (B,) words of each phrase, END not counted.
            target: (B, M + 1), like `source`.
            target_lengths: (B,), like `source_lengths`.
            sample: of the target words, to estimate Z; None computes Z exactly.

        Returns:
            Natural logs, (sum of target_lengths + B,) each, in the order of the words in the
            flattened `target`.
        """
        summary = self.encode(source, source_lengths)
        previous = functional.pad(target[:, :-1], (1, 0), value=END)
        position = torch.arange(target.shape[1], device=target.device)
        real = position <= target_lengths[:, None]  # (B, M + 1), 1 for words and the first END
        _, states = self.decode(self.summarised(summary), previous.t())
        features = states.transpose(0, 1)[real]  # (words, R)
        return word_terms(features, self.output_words, target[real], sample)
