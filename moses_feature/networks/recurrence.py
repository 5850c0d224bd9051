"""Recurrences over whole phrases, with their gradients.

Gated units (GRU) have a reset gate. Units without one are tanh and leaky units (with its own rate,
each moves a part of the way to its new value; Bengio, Boulanger-Lewandowski and Pascanu 2013) and
LSTM (Hochreiter and Schmidhuber 1997, with forget gates, without peepholes).

Automatic differentiation would compute and add the gradients of the recurrent matrices word by
word; here one product does it for all words of a batch. Products are computed in the type of the
inputs, all else at least in float32.

Axes: T words, time first, B phrase pairs, H hidden units, K products of a unit, W numbers of a
state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function


def unit_states(
    inputs: Tensor, start: Tensor, summary: Tensor, weight: Tensor, rate: Tensor | None = None
) -> Tensor:
    """Return the states (T, B, W) after each word, the hidden units first.

    Args:
        inputs: (T, B, K H) products of the words, with the biases: K = 1, or 4 of LSTM (input
            gate, forget gate, output gate, new content).
        start: (B, W) the state before the first word; LSTM has H memory cells behind the units.
        summary: (B, K H) added to the products of each word.
        weight: (K H, H) the matrix by which the units before each word are multiplied.
        rate: (H,) the share of the new value that a unit adopts, in (0, 1]; None for LSTM.
    """
    states: Tensor = _UnitStates.apply(inputs, start, summary, weight, rate)  # type: ignore[no-untyped-call]
    return states


class Cell(Protocol):
    """The element-wise part of a unit's step; in place, for B rows."""

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
        """Write the gradient of the products; return the gradient of the state before (B, W).

        The returned gradient does not include the part that flows through the products.

        Args:
            activations: (B, K H) as left by `forward`.
            states: (2, B, W) before the word and after it.
            d_after: (B, W) the gradient of the state after it.
            d_products: (B, K H).
        """


@dataclass(frozen=True)
class Leaky:
    """Units that move a part of the way to tanh of their product; all of it at rate 1."""

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
    """Units that read memory cells through an output gate; input and forget gates change these."""

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
        hidden, wide = weight.shape[1], torch.promote_types(inputs.dtype, torch.float32)
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


def encoder_states(inputs: Tensor, gates: Tensor, candidate: Tensor) -> Tensor:
    """Return the states (T, B, H) after each word, from zero; gates reset before U.

    Args:
        inputs: (T, B, 3 H) W_z e(x), W_r e(x), W e(x) and the biases.
        gates: (2 H, H) U_z, U_r.
        candidate: (H, H) U.
    """
    states: Tensor = _EncoderStates.apply(inputs, gates, candidate)  # type: ignore[no-untyped-call]
    return states


def decoder_states(inputs: Tensor, start: Tensor, summary: Tensor, weight: Tensor) -> Tensor:
    """Return the states (T, B, H) after each word; gates reset after U'.

    Args:
        inputs: (T, B, 3 H) W'_z e(y), W'_r e(y), W' e(y) and the biases.
        start: (B, H) h'_0.
        summary: (B, 3 H) C_z c, C_r c, C c.
        weight: (3 H, H) U'_z, U'_r, U'.
    """
    states: Tensor = _DecoderStates.apply(inputs, start, summary, weight)  # type: ignore[no-untyped-call]
    return states


class Products:
    """Products with a matrix in a type that may be shorter than that of the operands."""

    def __init__(self, weight: Tensor, dtype: torch.dtype, wide: torch.dtype) -> None:
        self._weight = weight.to(dtype)
        self._dtype = dtype
        self._wide = wide

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T, (B, out)."""
        return torch.mm(x.to(self._dtype), self._weight.t()).to(self._wide)

    def backward(self, gradient: Tensor) -> Tensor:
        """Return the gradient of x, (B, in), from that of x W^T."""
        return torch.mm(gradient.to(self._dtype), self._weight).to(self._wide)

    def of_weight(self, gradient: Tensor, x: Tensor) -> Tensor:
        """Return the gradient of W from those of x W^T (T, B, out) and x (T, B, in)."""
        rows = gradient.flatten(0, 1).to(self._dtype)
        return torch.mm(rows.t(), x.flatten(0, 1).to(self._dtype)).to(self._wide)


class _EncoderStates(Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, gates: Tensor, candidate: Tensor) -> Tensor:
        words, rows, hidden = inputs.shape[0], inputs.shape[1], candidate.shape[0]
        wide = torch.promote_types(inputs.dtype, torch.float32)
        with torch.autocast(inputs.device.type, enabled=False):
            of_gates = Products(gates, inputs.dtype, wide)
            of_candidate = Products(candidate, inputs.dtype, wide)
            zr = inputs[:, :, : 2 * hidden].to(wide, copy=True)
            new = inputs[:, :, 2 * hidden :].to(wide, copy=True)
            states = zr.new_zeros(words + 1, rows, hidden)
            for t in range(words):
                zr[t].add_(of_gates.forward(states[t])).sigmoid_()
                z, r = torch.split(zr[t], hidden, 1)
                new[t].add_(of_candidate.forward(r * states[t])).tanh_()
                torch.lerp(new[t], states[t], z, out=states[t + 1])
        ctx.save_for_backward(zr, new, states)
        ctx.products = of_gates, of_candidate
        ctx.dtype = inputs.dtype
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        zr, new, states = ctx.saved_tensors
        of_gates, of_candidate = ctx.products
        hidden = new.shape[2]
        d_inputs = zr.new_empty(*new.shape[:2], 3 * hidden)
        d_next = torch.zeros_like(new[0])
        for t in reversed(range(len(new))):
            z, r = torch.split(zr[t], hidden, 1)
            d_z, d_r, d_new = torch.split(d_inputs[t], hidden, 1)
            d_state = d_next + gradients[0][t]
            torch.mul(d_state * (states[t] - new[t]), z * (1 - z), out=d_z)
            torch.mul(d_state * (1 - z), 1 - new[t].square(), out=d_new)
            d_reset = of_candidate.backward(d_new)
            torch.mul(d_reset * states[t], r * (1 - r), out=d_r)
            d_next = d_state.mul_(z).addcmul_(d_reset, r)
            d_next += of_gates.backward(d_inputs[t, :, : 2 * hidden])
        before = states[:-1]
        d_gates = of_gates.of_weight(d_inputs[:, :, : 2 * hidden], before)
        d_candidate = of_candidate.of_weight(
            d_inputs[:, :, 2 * hidden :], zr[:, :, hidden:] * before
        )
        return d_inputs.to(ctx.dtype), d_gates, d_candidate


class _DecoderStates(Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, start: Tensor, summary: Tensor, weight: Tensor) -> Tensor:
        words, rows, hidden = inputs.shape[0], inputs.shape[1], start.shape[1]
        wide = torch.promote_types(inputs.dtype, torch.float32)
        with torch.autocast(inputs.device.type, enabled=False):
            products = Products(weight, inputs.dtype, wide)
            summary = summary.to(wide)
            zr = inputs[:, :, : 2 * hidden].to(wide, copy=True)
            new = inputs[:, :, 2 * hidden :].to(wide, copy=True)
            to_reset = new.new_empty(words, rows, hidden)
            states = new.new_empty(words + 1, rows, hidden)
            states[0] = start
            for t in range(words):
                recurrent = products.forward(states[t]).add_(summary)
                zr[t].add_(recurrent[:, : 2 * hidden]).sigmoid_()
                to_reset[t] = recurrent[:, 2 * hidden :]
                z, r = torch.split(zr[t], hidden, 1)
                new[t].addcmul_(r, to_reset[t]).tanh_()
                torch.lerp(new[t], states[t], z, out=states[t + 1])
        ctx.save_for_backward(zr, new, to_reset, states)
        ctx.products = products
        ctx.dtypes = inputs.dtype, start.dtype, summary.dtype
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        zr, new, to_reset, states = ctx.saved_tensors
        hidden = new.shape[2]
        d_inputs = zr.new_empty(*new.shape[:2], 3 * hidden)
        d_recurrent = torch.empty_like(d_inputs)
        d_next = torch.zeros_like(new[0])
        for t in reversed(range(len(new))):
            z, r = torch.split(zr[t], hidden, 1)
            d_z, d_r, d_new = torch.split(d_inputs[t], hidden, 1)
            d_state = d_next + gradients[0][t]
            torch.mul(d_state * (states[t] - new[t]), z * (1 - z), out=d_z)
            torch.mul(d_state * (1 - z), 1 - new[t].square(), out=d_new)
            torch.mul(d_new * to_reset[t], r * (1 - r), out=d_r)
            d_recurrent[t] = d_inputs[t]
            d_recurrent[t, :, 2 * hidden :] *= r
            d_next = d_state.mul_(z).add_(ctx.products.backward(d_recurrent[t]))
        d_weight = ctx.products.of_weight(d_recurrent, states[:-1])
        inputs_type, start_type, summary_type = ctx.dtypes
        d_summary = d_recurrent.sum(0).to(summary_type)
        return d_inputs.to(inputs_type), d_next.to(start_type), d_summary, d_weight
