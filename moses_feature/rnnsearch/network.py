"""RNNsearch, which aligns while it translates (Bahdanau, Cho and Bengio 2015, appendix A).

Axes: B sentence pairs, N source positions, M target positions, H hidden units, E embedding, A
alignment units, S maxout units, V target words. In the comments x is the source, y the target
sentence, h an annotation of a source word, s a state of the decoder, c the context, the mean of
the annotations that is expected under the alignment.

The update gate z here is 1 - z of the paper's appendix, so that this network and the
encoder-decoder share one recurrence. It is equivalent to W_z, U_z and C_z of the opposite sign,
which are as likely at the start.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from moses_feature.networks.dropout import Dropout
from moses_feature.networks.pair_network import PairNetwork, draw_weights
from moses_feature.networks.recurrence import encoder_states
from moses_feature.networks.softmax import word_terms
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_sample import WordSample
from moses_feature.rnnsearch.settings import RnnSearchSizes

SMALLEST = 1e-30
"""Smaller probabilities of links are taken for this one; they have no gradient."""


class RnnSearch(PairNetwork):
    """p(target sentence | source sentence) as a product over the target words.

    END follows both sentences, and has an annotation of its own; its embedding as y_0 is zero
    and stays so. Dropout, which the paper does not have, zeroes random components of the
    embeddings and the maxout units in training and scales up the others.
    """

    sizes: RnnSearchSizes

    def __init__(
        self, sizes: RnnSearchSizes, source_words: int, target_words: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        hidden, embedding, maxout = sizes.hidden, sizes.embedding, sizes.maxout
        self.sizes = sizes
        self.dropout = Dropout(dropout)
        self.source_embedding = nn.Embedding(source_words, embedding)
        self.target_embedding = nn.Embedding(target_words, embedding, padding_idx=END)
        # The rows of a product of size 3 H belong to z, r and the candidate state, in this order.
        self.forward_input = nn.Linear(embedding, 3 * hidden)  # W_z, W_r, W and the biases
        self.forward_gates = nn.Linear(hidden, 2 * hidden, bias=False)  # U_z, U_r
        self.forward_candidate = nn.Linear(hidden, hidden, bias=False)  # U
        self.backward_input = nn.Linear(embedding, 3 * hidden)
        self.backward_gates = nn.Linear(hidden, 2 * hidden, bias=False)
        self.backward_candidate = nn.Linear(hidden, hidden, bias=False)
        self.decoder_start = nn.Linear(hidden, hidden)  # W_s
        self.alignment_state = nn.Linear(hidden, sizes.alignment)  # W_a and the bias
        self.alignment_annotation = nn.Linear(2 * hidden, sizes.alignment, bias=False)  # U_a
        self.alignment_energy = nn.Linear(sizes.alignment, 1, bias=False)  # v_a
        self.decoder_input = nn.Linear(embedding, 3 * hidden)  # W_z, W_r, W and the biases
        self.decoder_context = nn.Linear(2 * hidden, 3 * hidden, bias=False)  # C_z, C_r, C
        self.decoder_gates = nn.Linear(hidden, 2 * hidden, bias=False)  # U_z, U_r
        self.decoder_candidate = nn.Linear(hidden, hidden, bias=False)  # U
        self.maxout_state = nn.Linear(hidden, 2 * maxout)  # U_o and the bias
        self.maxout_input = nn.Linear(embedding, 2 * maxout, bias=False)  # V_o
        self.maxout_context = nn.Linear(2 * hidden, 2 * maxout, bias=False)  # C_o
        self.output_words = nn.Linear(maxout, target_words)  # W_o and the bias

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights as in appendix B.1 of the paper.

        Recurrent matrices are orthogonal, W_a and U_a Gaussian with standard deviation 0.001, v_a
        and the biases zero, all else Gaussian with standard deviation 0.01.
        """
        recurrent = [
            getattr(self, f"{part}_{matrix}")
            for part in ("forward", "backward", "decoder")
            for matrix in ("gates", "candidate")
        ]
        draw_weights(self, recurrent, self.target_embedding, generator)
        with torch.no_grad():
            for layer in (self.alignment_state, self.alignment_annotation):
                layer.weight.normal_(std=0.001, generator=generator)
            self.alignment_energy.weight.zero_()

    def annotations(self, source: Tensor, lengths: Tensor) -> Tensor:
        """Return the annotations h (B, N + 1, 2 H): forward and backward states of each word.

        Args:
            source: (B, N + 1) word ids, END after each sentence and behind it.
            lengths: (B,) words of each sentence, END not counted.
        """
        embedded = self.dropout(self.source_embedding(source.t()))  # (N + 1, B, E)
        forward = encoder_states(
            self.forward_input(embedded), self.forward_gates.weight, self.forward_candidate.weight
        )
        # Backward from the END of each sentence; the padding behind it stays in place.
        position = torch.arange(len(embedded), device=source.device)[:, None]
        turned = torch.where(position <= lengths, lengths - position, position)[:, :, None]
        backward = encoder_states(
            self.backward_input(torch.take_along_dim(embedded, turned, 0)),
            self.backward_gates.weight,
            self.backward_candidate.weight,
        )
        backward = torch.take_along_dim(backward, turned, 0)
        return torch.cat([forward, backward], 2).transpose(0, 1)

    def decode(
        self, annotations: Tensor, lengths: Tensor, previous: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return features t (M + 1, B, S) and alignments (M + 1, B, N + 1) at target positions.

        Args:
            annotations: (B, N + 1, 2 H).
            lengths: (B,) words of the source sentences, END not counted.
            previous: (M + 1, B) ids of the words before each position, END first.
        """
        embedded = self.dropout(self.target_embedding(previous))  # (M + 1, B, E)
        inputs = self.decoder_input(embedded)  # (M + 1, B, 3 H)
        keys = self.alignment_annotation(annotations)  # (B, N + 1, A)
        padding = torch.arange(annotations.shape[1], device=lengths.device) > lengths[:, None]
        # The product of a context is the mean of the annotations' products, computed together.
        products = self.decoder_context(annotations), self.maxout_context(annotations)
        values = torch.cat(products, 2)  # (B, N + 1, 3 H + 2 S)
        hidden = self.sizes.hidden
        state = torch.tanh(self.decoder_start(annotations[:, 0, hidden:]))
        states, contexts, alignments = [], [], []
        for step in inputs:
            alignment = self._align(state, keys, padding)
            context = torch.bmm(alignment[:, None].to(values.dtype), values)[:, 0]
            states.append(state)
            contexts.append(context[:, 3 * hidden :])
            alignments.append(alignment)
            state = self._next_state(state, step + context[:, : 3 * hidden])
        pieces = self.maxout_state(torch.stack(states)) + self.maxout_input(embedded)
        pieces = pieces + torch.stack(contexts)  # (M + 1, B, 2 S)
        maxout = torch.unflatten(pieces, 2, (-1, 2)).amax(3)  # (M + 1, B, S)
        return self.dropout(maxout), torch.stack(alignments)

    def _align(self, state: Tensor, keys: Tensor, padding: Tensor) -> Tensor:
        """Return the alignment (B, N + 1) of states (B, H)."""
        energy = self.alignment_energy(torch.tanh(self.alignment_state(state)[:, None] + keys))
        return torch.softmax(energy[:, :, 0].masked_fill(padding, -torch.inf), 1)

    def _next_state(self, state: Tensor, inputs: Tensor) -> Tensor:
        """Return the state after a word, given W e(y) + C c (B, 3 H) of gates and candidate."""
        hidden = self.sizes.hidden
        gates = torch.sigmoid(inputs[:, : 2 * hidden] + self.decoder_gates(state))
        z, r = torch.split(gates, hidden, 1)
        new = torch.tanh(inputs[:, 2 * hidden :] + self.decoder_candidate(r * state))
        return new + z * (state - new)

    def forward(
        self,
        source: Tensor,
        source_lengths: Tensor,
        target: Tensor,
        target_lengths: Tensor,
        sample: WordSample | None = None,
        links: Tensor | None = None,
        smooth: bool = False,
    ) -> tuple[Tensor, ...]:
        """Return log p and log Z of every target word, END included; see `EncoderDecoder`.

        With `smooth`, also return the mean of log p over all words of the vocabulary. Given links
        (3, L), each a pair, a target and a source position, return last the log probability (L,)
        of each link in the alignment of its target word.
        """
        annotations = self.annotations(source, source_lengths)
        previous = functional.pad(target[:, :-1], (1, 0), value=END)
        features, alignments = self.decode(annotations, source_lengths, previous.t())
        position = torch.arange(target.shape[1], device=target.device)
        real = position <= target_lengths[:, None]  # (B, M + 1), 1 for words and the first END
        before = features.transpose(0, 1)[real]  # (words, S)
        found = word_terms(before, self.output_words, target[real], sample, smooth)
        if links is None:
            return found
        pair, written, read = links
        return *found, torch.log(alignments[written, pair, read].clamp_min(SMALLEST))
