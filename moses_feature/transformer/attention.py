"""Attention of several heads (Vaswani et al. 2017, section 3.2), of plain products.

Axes: B sentence pairs, M queries, N keys, H heads, W units of a head, D = H W units.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.MultiheadAttention):
    """PyTorch's attention without dropout, of plain products and few copies.

    On a CPU PyTorch's own takes half as long again for its copies, masks and checks, and the
    gradient of its fused one a quarter of an update in bfloat16. On a GPU cuDNN's, in bfloat16,
    plans anew for each length: milliseconds, in place of microseconds. Weights have the same names.

    The bias of keys is not learnt. It adds the same to all energies of a query, so that its
    gradient is 0 but for rounding; Adam would make full steps of that, and in the end a number so
    large that bfloat16 cannot hold the keys beside it.
    """

    def __init__(self, units: int, heads: int) -> None:
        super().__init__(units, heads, batch_first=True)
        self.in_proj_bias.register_hook(_without_keys)  # type: ignore[no-untyped-call]

    def forward(  # type: ignore[override]  # what else a layer of PyTorch gives follows from these
        self,
        query: Tensor,
        key: Tensor,
        _value: Tensor,
        *,
        key_padding_mask: Tensor | None = None,
        attn_mask: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Return means of the values (B, M, D), and no weights; see the class above.

        Value is key, and masks are of numbers that are added, or 1 where nothing is read.
        """
        weight, bias, units = self.in_proj_weight, self.in_proj_bias, self.embed_dim
        if key is query:
            queries, keys, values = self._by_head(functional.linear(query, weight, bias))
        else:
            (queries,) = self._by_head(functional.linear(query, weight[:units], bias[:units]))
            keys, values = self._by_head(functional.linear(key, weight[units:], bias[units:]))
        with torch.autocast(query.device.type, enabled=False):
            shares = self._shares(queries, keys, attn_mask, key_padding_mask)
        means = torch.bmm(shares.to(values.dtype), values)
        together = means.view(len(query), self.num_heads, -1, self.head_dim).transpose(1, 2)
        return self.out_proj(together.flatten(2)), None

    def _shares(
        self,
        queries: Tensor,
        keys: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
    ) -> Tensor:
        """Return the share (B H, M, N) of each key, in float32 at least.

        What is common to the energies of a query changes nothing, but would take the digits of
        their differences in bfloat16.
        """
        wide = torch.promote_types(queries.dtype, torch.float32)
        queries, keys = queries.to(wide), keys.to(wide)
        mask = queries.new_zeros(())
        if attn_mask is not None:
            mask = mask + _added(attn_mask, queries)
        if key_padding_mask is not None:
            of_each = _added(key_padding_mask, queries)[:, None, None]  # (B, 1, 1, N)
            mask = mask + of_each.expand(-1, self.num_heads, -1, -1).flatten(0, 1)
        energies = torch.baddbmm(mask, queries, keys.transpose(1, 2), alpha=self.head_dim**-0.5)
        return torch.softmax(energies, 2)

    def _by_head(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return parts (B H, ·, W) of rows (B, ·, D each)."""
        pairs, places, _ = rows.shape
        parts = rows.view(pairs, places, -1, self.num_heads, self.head_dim)
        return tuple(parts.permute(2, 0, 3, 1, 4).flatten(1, 2))


def _without_keys(gradient: Tensor) -> Tensor:
    """Return the gradient (3 D,) of the bias of queries, keys and values, 0 for keys."""
    of_queries, of_keys, of_values = gradient.chunk(3)
    return torch.cat([of_queries, torch.zeros_like(of_keys), of_values])


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask as numbers to add."""
    if mask.dtype == torch.bool:
        return like.new_zeros(mask.shape).masked_fill(mask, -torch.inf)
    return mask.to(like.dtype)
