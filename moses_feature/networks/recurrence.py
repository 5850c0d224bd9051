"""Recurrences over whole phrases, with their gradients.

Gated units (GRU) have a reset gate. Units without one are tanh units and LSTM (Hochreiter and
Schmidhuber 1997, with forget gates, without peepholes).

Automatic differentiation would compute and add the gradients of the recurrent matrices word by
word; for gated units one product does it for all words of a batch. Products are computed in the
type of the inputs, all else at least in float32.

Axes: T words, time first, B phrase pairs, H hidden units, K products of a unit, W numbers of a
state.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional


def unit_states(inputs: Tensor, start: Tensor, summary: Tensor, weight: Tensor) -> Tensor:
    """Return the states (T, B, W) of units without a reset gate after each word.

    Args:
        inputs: (T, B, K H) products of the words, with the biases: K = 1 of tanh units, 4 of LSTM
            (input gate, forget gate, output gate, new content).
        start: (B, W) the state before the first word; LSTM has H memory cells behind the units.
        summary: (B, K H) added to the products of each word.
        weight: (K H, H) the matrix by which the units before each word are multiplied.
    """
    hidden, states = weight.shape[1], []
    units, memory = start[:, :hidden], start[:, hidden:]
    for of_word in inputs:
        products = of_word + functional.linear(units, weight) + summary
        products = products.to(torch.promote_types(products.dtype, torch.float32))
        if memory.shape[1] == 0:
            units = torch.tanh(products)
        else:
            take, keep, show, new = torch.split(products, hidden, 1)
            memory = torch.sigmoid(keep) * memory + torch.sigmoid(take) * torch.tanh(new)
            units = torch.sigmoid(show) * torch.tanh(memory)
        states.append(torch.cat([units, memory], 1))
    return torch.stack(states)


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
