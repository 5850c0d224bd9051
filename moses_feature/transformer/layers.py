"""The layers of a Transformer, normalised before each part (Xiong et al. 2020).

Weights have the names of PyTorch's own layers.

Axes: B sentence pairs, M queries, N keys, H heads, W units of a head, D = H W units.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from moses_feature.networks.dropout import Dropout
from moses_feature.transformer.settings import TransformerSizes


class Attention(nn.Module):
    """Attention of several heads (Vaswani et al. 2017, section 3.2), of plain products.

    On a CPU PyTorch's own takes half as long again for its copies, masks and checks, and the
    gradient of its fused one a quarter of an update in bfloat16. On a GPU cuDNN's, in bfloat16,
    plans anew for each length, which takes milliseconds.

    The bias of keys is not learnt. It adds the same to all energies of a query, so that its
    gradient is 0 but for rounding; Adam would make full steps of that, and in the end a number so
    large that bfloat16 cannot hold the keys beside it.
    """

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads, self.units, self.width = heads, units, units // heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * units, units))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * units))
        self.out_proj = nn.Linear(units, units)
        nn.init.xavier_uniform_(self.in_proj_weight)
        self.in_proj_bias.register_hook(_without_keys)  # type: ignore[no-untyped-call]

    def forward(self, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Return means (B, M, D) of the values of the keys.

        Args:
            queries: (B, M, D).
            keys: (B, N, D); the queries themselves for attention to the own text.
            mask: is added to the energies; its shape can be expanded to (B H, M, N).
        """
        weight, bias, units = self.in_proj_weight, self.in_proj_bias, self.units
        if keys is queries:
            asked, found, values = self._by_head(functional.linear(queries, weight, bias))
        else:
            (asked,) = self._by_head(functional.linear(queries, weight[:units], bias[:units]))
            found, values = self._by_head(functional.linear(keys, weight[units:], bias[units:]))
        with torch.autocast(queries.device.type, enabled=False):
            shares = self._shares(asked, found, mask)
        means = torch.bmm(shares.to(values.dtype), values)
        together = means.view(len(queries), self.heads, -1, self.width).transpose(1, 2)
        attended: Tensor = self.out_proj(together.flatten(2))
        return attended

    def _shares(self, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Return the share (B H, M, N) of each key, in float32 at least.

        What is common to the energies of a query changes nothing, but would take the digits of
        their differences in bfloat16.
        """
        wide = torch.promote_types(queries.dtype, torch.float32)
        given = mask.to(wide), queries.to(wide), keys.to(wide).transpose(1, 2)
        return torch.softmax(torch.baddbmm(*given, alpha=self.width**-0.5), 2)

    def _by_head(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return parts (B H, ·, W) of rows (B, ·, D each)."""
        pairs, places, _ = rows.shape
        parts = rows.view(pairs, places, -1, self.heads, self.width)
        return tuple(parts.permute(2, 0, 3, 1, 4).flatten(1, 2))

    def first_head(self, queries: Tensor, keys: Tensor, padding: Tensor) -> Tensor:
        """Return the log probabilities (B, M, N) of the first head.

        Args:
            queries: (B, M, D).
            keys: (B, N, D).
            padding: (B, N) 1 behind the end of each source sentence.
        """
        weight, bias, width = self.in_proj_weight, self.in_proj_bias, self.width
        of_keys = slice(self.units, self.units + width)
        with torch.autocast(queries.device.type, enabled=False):
            queries, keys = queries.to(weight.dtype), keys.to(weight.dtype)
            query = functional.linear(queries, weight[:width], bias[:width])
            key = functional.linear(keys, weight[of_keys], bias[of_keys])
            energy = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(width)
        return torch.log_softmax(energy.masked_fill(padding[:, None], -torch.inf), 2)


def _without_keys(gradient: Tensor) -> Tensor:
    """Return the gradient (3 D,) of the bias of queries, keys and values, 0 for keys."""
    of_queries, of_keys, of_values = gradient.chunk(3)
    return torch.cat([of_queries, torch.zeros_like(of_keys), of_values])


def padding_mask(padding: Tensor, heads: int) -> Tensor:
    """Return the mask (B H, 1, N) of padding (B, N)."""
    mask = torch.zeros(padding.shape, device=padding.device).masked_fill(padding, -torch.inf)
    return mask.repeat_interleave(heads, 0)[:, None]


def causal_mask(places: int, device: torch.device) -> Tensor:
    """Return the mask (N, N) by which a place attends to those up to its own."""
    return torch.full((places, places), -torch.inf, device=device).triu(1)


class Layer(nn.Module):
    """Attention to the own text, perhaps to another, and two feed-forward layers.

    Each adds to what it is given, and reads it normalised.
    """

    def __init__(self, sizes: TransformerSizes, dropout: float, reads_source: bool) -> None:
        super().__init__()
        self.self_attn = Attention(sizes.units, sizes.heads)
        self.multihead_attn = Attention(sizes.units, sizes.heads) if reads_source else None
        self.linear1 = nn.Linear(sizes.units, sizes.inner)
        self.linear2 = nn.Linear(sizes.inner, sizes.units)
        self.norm1 = nn.LayerNorm(sizes.units)
        self.norm2 = nn.LayerNorm(sizes.units)
        self.norm3 = nn.LayerNorm(sizes.units) if reads_source else None
        self.dropout = Dropout(dropout)

    def forward(
        self, states: Tensor, mask: Tensor, source: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the states (B, M, D) after the layer, and what it asked of the source.

        Args:
            states: (B, M, D).
            mask: of the own text; see `Attention`.
            source: the other text (B, N, D) and its mask.
        """
        normal = self.norm1(states)
        states = states + self.dropout(self.self_attn(normal, normal, mask))
        normal = asked = self.norm2(states)
        if self.multihead_attn and self.norm3 and source:
            states = states + self.dropout(self.multihead_attn(asked, *source))
            normal = self.norm3(states)
        inner = self.dropout(functional.relu(self.linear1(normal)))
        return states + self.dropout(self.linear2(inner)), asked


class Stack(nn.Module):
    """Layers, and a normalisation behind the last one."""

    def __init__(self, sizes: TransformerSizes, layers: int, dropout: float, reads_source: bool):
        super().__init__()
        made = (Layer(sizes, dropout, reads_source) for _ in range(layers))
        self.layers = nn.ModuleList(made)
        self.norm = nn.LayerNorm(sizes.units)

    def forward(
        self, states: Tensor, mask: Tensor, source: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the states after all layers, and what the last one asked; see `Layer`."""
        asked = states
        for layer in self.layers:
            states, asked = layer(states, mask, source)
        return self.norm(states), asked
