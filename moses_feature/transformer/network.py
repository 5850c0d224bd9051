"""The Transformer (Vaswani et al. 2017), normalised before each layer (Xiong et al. 2020).

Target embeddings and output matrix are one (Press and Wolf 2017).

Axes: B sentence pairs, N source positions, M target positions, D units, V target words.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from moses_feature.networks.dropout import Dropout
from moses_feature.networks.pair_network import PairNetwork
from moses_feature.networks.softmax import word_terms
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_sample import WordSample
from moses_feature.transformer.layers import Stack, causal_mask, padding_mask
from moses_feature.transformer.settings import TransformerSizes, waves


class Transformer(PairNetwork):
    """p(target sentence | source sentence) as a product over the target words.

    END follows both sentences, and stands before the first target word. Dropout zeroes
    components of the embeddings, of what each layer adds, and of the inner units.
    """

    sizes: TransformerSizes

    def __init__(
        self, sizes: TransformerSizes, source_words: int, target_words: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.sizes = sizes
        units = sizes.units
        self.dropout = Dropout(dropout)
        self.source_embedding = nn.Embedding(source_words, units)
        self.encoder = Stack(sizes, sizes.encoder_layers, dropout, reads_source=False)
        self.decoder = Stack(sizes, sizes.decoder_layers, dropout, reads_source=True)
        self.output_words = nn.Linear(units, target_words)

    def share_embeddings(self) -> None:
        """Make all embeddings one: source, target and output (Press and Wolf 2017, "three-way")."""
        self.source_embedding.weight = self.output_words.weight

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights: Glorot's uniform for matrices, D^-1/2 Gaussian for embeddings."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.startswith(("source_embedding", "output_words.weight")):
                    parameter.normal_(std=self.sizes.units**-0.5, generator=generator)
                elif parameter.ndim > 1:
                    nn.init.xavier_uniform_(parameter, generator=generator)
                elif "norm" not in name:
                    parameter.zero_()
                else:
                    parameter.fill_(float(name.endswith("weight")))

    def _placed(self, words: Tensor, embedding: Tensor) -> Tensor:
        """Return the embeddings (B, N, D) of words, their places added."""
        places = torch.from_numpy(waves(words.shape[1], self.sizes.units)).to(words.device)
        embedded = functional.embedding(words, embedding) * math.sqrt(self.sizes.units)
        placed: Tensor = self.dropout(embedded + places)
        return placed

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
        of each link in the attention of the last layer's first head (Garg et al. 2019).
        """
        padding = torch.arange(source.shape[1], device=source.device) > source_lengths[:, None]
        previous = functional.pad(target[:, :-1], (1, 0), value=END)
        mask = padding_mask(padding, self.sizes.heads)
        read, _ = self.encoder(self._placed(source, self.source_embedding.weight), mask)
        causal = causal_mask(target.shape[1], target.device)
        embedded = self._placed(previous, self.output_words.weight)
        written, asked = self.decoder(embedded, causal, (read, mask))
        position = torch.arange(target.shape[1], device=target.device)
        real = position <= target_lengths[:, None]  # (B, M + 1), 1 for words and the first END
        before = written[real]  # (words, D)
        found = word_terms(before, self.output_words, target[real], sample, smooth)
        if links is None:
            return found
        pair, of_target, of_source = links
        last: Any = self.decoder.layers[-1]
        alignment = last.multihead_attn.first_head(asked, read, padding)
        return *found, alignment[pair, of_target, of_source]
