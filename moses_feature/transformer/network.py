"""The Transformer (Vaswani et al. 2017), normalised before each layer (Xiong et al. 2020).

Target embeddings and output matrix are one (Press and Wolf 2017).

Axes: B sentence pairs, N source positions, M target positions, D units, V target words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from moses_feature.networks.dropout import Dropout
from moses_feature.networks.pair_network import PairNetwork
from moses_feature.networks.softmax import word_terms
from moses_feature.networks.vocabulary import END
from moses_feature.networks.word_sample import WordSample
from moses_feature.transformer.attention import Attention
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
        given: dict[str, Any] = {"dropout": dropout, "batch_first": True, "norm_first": True}
        self.dropout = Dropout(dropout)
        self.source_embedding = nn.Embedding(source_words, units)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(units, sizes.heads, sizes.inner, **given),
            sizes.encoder_layers,
            nn.LayerNorm(units),
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(units, sizes.heads, sizes.inner, **given),
            sizes.decoder_layers,
            nn.LayerNorm(units),
        )
        self.output_words = nn.Linear(units, target_words)
        _use_fast_parts(self)

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
        attention = self.decoder.layers[-1].multihead_attn
        with _queries_to(attention) as queries:
            read = self.encoder(
                self._placed(source, self.source_embedding.weight), src_key_padding_mask=padding
            )
            written = self.decoder(
                self._placed(previous, self.output_words.weight),
                read,
                tgt_mask=nn.Transformer.generate_square_subsequent_mask(
                    target.shape[1], device=target.device
                ),
                tgt_is_causal=True,
                memory_key_padding_mask=padding,
            )
        position = torch.arange(target.shape[1], device=target.device)
        real = position <= target_lengths[:, None]  # (B, M + 1), 1 for words and the first END
        before = written[real]  # (words, D)
        found = word_terms(before, self.output_words, target[real], sample, smooth)
        if links is None:
            return found
        pair, of_target, of_source = links
        alignment = _first_head(attention, queries[0], read, padding)
        return *found, alignment[pair, of_target, of_source]


def _use_fast_parts(network: nn.Module) -> None:
    """Replace PyTorch's attentions, with them dropout of their weights, and its dropouts."""
    for part in list(network.modules()):
        for name, child in part.named_children():
            if type(child) is nn.Dropout:
                setattr(part, name, Dropout(child.p))
            elif type(child) is nn.MultiheadAttention:
                setattr(part, name, Attention(child.embed_dim, child.num_heads))


@contextmanager
def _queries_to(attention: nn.MultiheadAttention) -> Iterator[list[Tensor]]:
    """Gather the queries (B, M, D) of each call of an attention."""
    queries: list[Tensor] = []
    hook = attention.register_forward_pre_hook(lambda _, given: queries.append(given[0]))
    try:
        yield queries
    finally:
        hook.remove()


def _first_head(
    attention: nn.MultiheadAttention, queries: Tensor, keys: Tensor, padding: Tensor
) -> Tensor:
    """Return the log probabilities (B, M, N) of an attention's first head (Vaswani et al. 3.2).

    Args:
        attention: the attention.
        queries: (B, M, D), before they are projected.
        keys: (B, N, D), before they are projected.
        padding: (B, N) 1 behind the end of each source sentence.
    """
    units, width = attention.embed_dim, attention.head_dim
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    of_keys = slice(units, units + width)
    with torch.autocast(queries.device.type, enabled=False):  # see `Attention`
        queries, keys = queries.to(weight.dtype), keys.to(weight.dtype)
        query = functional.linear(queries, weight[:width], bias[:width])
        key = functional.linear(keys, weight[of_keys], bias[of_keys])
        energy = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(width)
    return torch.log_softmax(energy.masked_fill(padding[:, None], -torch.inf), 2)
