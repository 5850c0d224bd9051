"""Recurrences of units without a reset gate over whole phrases, with their gradients.

Tanh units and leaky ones (with a rate of its own, each unit goes a part of the way to its new
value; Bengio, Boulanger-Lewandowski and Pascanu 2013) and LSTM (Hochreiter and Schmidhuber 1997,
with forget gates, without peepholes). As in `recurrence.py`, the gradients of the matrices are one
product for all words of a batch.

Axes: T words, time first, B phrase pairs, H hidden units, K products of a unit, W numbers of a
state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function

from moses_feature.networks.recurrence import Products, wide_type


def unit_states(
    inputs: Tensor, start: Tensor, summary: Tensor, weight: Tensor, rate: Tensor | None = None
) -> Tensor:
    """Return the states (T, B, W) after each word, the hidden units first.

    Args:
        inputs: (T, B, K H) products of the words, with the biases: K = 1, or 4 of LSTM (input
            gate, forget gate, output gate, new content).
        start: (B, W) the state before the first word; LSTM has H memory cells behind the units.
        summary: (B, K H) what is added to the products of each word.
        weight: (K H, H) of the units before each word.
        rate: (H,) how far a unit goes to its new value, in (0, 1]; None for LSTM.
    """
    states: Tensor = _UnitStates.apply(inputs, start, summary, weight, rate)  # type: ignore[no-untyped-call]
    return states


class Cell(Protocol):
    """What a unit does with its products; all in place, of B rows."""

    def forward(self, products: Tensor, before: Tensor, after: Tensor) -> None:
        """Write the state after a word; the activations replace the products.

        Args:
            products: (B, K H).
            before: (B, W) the state before the word.
            after: (B, W).
        """

    def backward(
        self, activations: Tensor, states: Tensor, d_after: Tensor, d_products: Tensor
    ) -> Tensor:
        """Write the gradient of the products; return that of the state before (B, W).

        What comes to the state before through the products is not in it.

        Args:
            activations: (B, K H) what `forward` left.
            states: (2, B, W) before the word and after it.
            d_after: (B, W) the gradient of the state after it.
            d_products: (B, K H).
        """


@dataclass(frozen=True)
class Leaky:
    """Units that go a part of the way to tanh of their product; all of it with a rate of 1."""

    rate: Tensor

    def forward(self, products: Tensor, before: Tensor, after: Tensor) -> None:
        """See `Cell`."""
        torch.lerp(before, products.tanh_(), self.rate, out=after)

    def backward(
        self, activations: Tensor, states: Tensor, d_after: Tensor, d_products: Tensor
    ) -> Tensor:
        """See `Cell`."""
        del states
        torch.mul(d_after * self.rate, 1 - activations.square(), out=d_products)
        return d_after * (1 - self.rate)


class Lstm:
    """Units behind an output gate of memory cells, which forget and take in."""

    def forward(self, products: Tensor, before: Tensor, after: Tensor) -> None:
        """See `Cell`."""
        hidden = before.shape[1] // 2
        products[:, : 3 * hidden].sigmoid_()
        products[:, 3 * hidden :].tanh_()
        take, keep, show, new = torch.split(products, hidden, 1)
        memory = after[:, hidden:]
        torch.mul(keep, before[:, hidden:], out=memory).addcmul_(take, new)
        torch.mul(show, torch.tanh(memory), out=after[:, :hidden])

    def backward(
        self, activations: Tensor, states: Tensor, d_after: Tensor, d_products: Tensor
    ) -> Tensor:
        """See `Cell`."""
        hidden = d_after.shape[1] // 2
        take, keep, show, new = torch.split(activations, hidden, 1)
        d_take, d_keep, d_show, d_new = torch.split(d_products, hidden, 1)
        d_units, shown = d_after[:, :hidden], torch.tanh(states[1, :, hidden:])
        d_memory = d_after[:, hidden:] + d_units * show * (1 - shown.square())
        torch.mul(d_units * shown, show * (1 - show), out=d_show)
        torch.mul(d_memory * new, take * (1 - take), out=d_take)
        torch.mul(d_memory * states[0, :, hidden:], keep * (1 - keep), out=d_keep)
        torch.mul(d_memory * take, 1 - new.square(), out=d_new)
        return torch.cat([torch.zeros_like(d_units), d_memory * keep], 1)


class _UnitStates(Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        start: Tensor,
        summary: Tensor,
        weight: Tensor,
        rate: Tensor | None,
    ) -> Tensor:
        hidden, wide = weight.shape[1], wide_type(inputs.dtype)
        cell: Cell = Lstm() if rate is None else Leaky(rate.to(wide))
        with torch.autocast(inputs.device.type, enabled=False):
            recurrent = Products(weight, inputs.dtype, wide)
            products = inputs.to(wide, copy=True)
            states = products.new_empty(len(inputs) + 1, *start.shape)
            states[0] = start
            for t in range(len(inputs)):
                products[t].add_(recurrent.forward(states[t, :, :hidden])).add_(summary)
                cell.forward(products[t], states[t], states[t + 1])
        ctx.save_for_backward(products, states)
        ctx.cell, ctx.recurrent, ctx.hidden = cell, recurrent, hidden
        ctx.types = inputs.dtype, start.dtype, summary.dtype
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        activations, states = ctx.saved_tensors
        d_products = torch.empty_like(activations)
        d_next = torch.zeros_like(states[0])
        for t in reversed(range(len(activations))):
            d_after = d_next + gradients[0][t]
            d_next = ctx.cell.backward(activations[t], states[t : t + 2], d_after, d_products[t])
            d_next[:, : ctx.hidden] += ctx.recurrent.backward(d_products[t])
        d_weight = ctx.recurrent.of_weight(d_products, states[:-1, :, : ctx.hidden])
        inputs_type, start_type, summary_type = ctx.types
        d_summary = d_products.sum(0).to(summary_type)
        return d_products.to(inputs_type), d_next.to(start_type), d_summary, d_weight, None
