"""What a step computes beside its matrix products, in plain PyTorch: the twin of `kernels`."""

from __future__ import annotations

import torch
from torch import Tensor


def encoder_gates(
    gates: Tensor, inputs: Tensor, word: Tensor, state: Tensor, reset: Tensor
) -> None:
    hidden = state.shape[1]
    gates += inputs[word, : 2 * hidden]
    gates.sigmoid_()
    torch.mul(gates[:, hidden:], state, out=reset)


def encoder_state(
    gates: Tensor, candidate: Tensor, inputs: Tensor, word: Tensor, state: Tensor
) -> None:
    hidden = state.shape[1]
    candidate += inputs[word, 2 * hidden :]
    candidate.tanh_()
    torch.lerp(candidate, state, gates[:, :hidden], out=state)


def decoder_state(
    recurrent: Tensor,
    inputs: Tensor,
    word: Tensor,
    summaries: Tensor,
    source: Tensor,
    state: Tensor,
) -> None:
    hidden = state.shape[1]
    of_word = inputs[word]
    recurrent += summaries[source]
    gates = recurrent[:, : 2 * hidden].add_(of_word[:, : 2 * hidden]).sigmoid_()
    z, r = gates[:, :hidden], gates[:, hidden:]
    candidate = torch.addcmul(of_word[:, 2 * hidden :], r, recurrent[:, 2 * hidden :])
    torch.lerp(candidate.tanh_(), state, z, out=state)


def maxout(
    pieces: Tensor, inputs: Tensor, word: Tensor, summaries: Tensor, source: Tensor, units: Tensor
) -> None:
    pieces += inputs[word]
    pieces += summaries[source]
    torch.amax(torch.unflatten(pieces, 1, (-1, 2)), 2, out=units)


def tanh_in_place(x: Tensor) -> None:
    x.tanh_()


def add_exps(logits: Tensor, bias: Tensor, top: Tensor, total: Tensor) -> None:
    logits += bias
    highest = torch.maximum(top, logits.amax(1))
    logits -= highest[:, None]
    total *= torch.exp(top - highest)
    total += logits.exp_().sum(1)
    top.copy_(highest)


def add_exps_of_most(
    logits: Tensor,
    bias: Tensor,
    first: int,
    top: Tensor,
    total: Tensor,
    best: Tensor,
    best_word: Tensor,
) -> None:
    whole = logits.float() + bias
    number = torch.arange(first, first + len(bias), device=bias.device).expand_as(whole)
    candidates = torch.cat([best, whole], 1)
    kept, place = candidates.topk(best.shape[1], 1)
    best_word.copy_(torch.cat([best_word, number], 1).gather(1, place))
    best.copy_(kept)
    add_exps(whole, torch.zeros_like(bias), top, total)


def logits_at(
    features: Tensor, words: Tensor, bias: Tensor, row: Tensor, word: Tensor, logits: Tensor
) -> None:
    torch.linalg.vecdot(features[row], words[word], out=logits)
    logits += bias[word]
