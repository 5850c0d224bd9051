"""What a step computes beside its matrix products: in PyTorch for a GPU, compiled for the CPU.

Axes: K rows of a block, H hidden units, S maxout units, R output rank, V words, n source phrases.
Every function works in place, on blocks of K rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from moses_feature.scoring import kernels


def encoder_gates(
    gates: Tensor, inputs: Tensor, word: Tensor, state: Tensor, reset: Tensor
) -> None:
    """Turn U_z h, U_r h into z and r, and write r * h to `reset`.

    Args:
        gates: (K, 2 H); z is left in its first half.
        inputs: (V, 3 H) the words' products.
        word: (K,) the word that is read.
        state: (K, H) h.
        reset: (K, H).
    """
    hidden = state.shape[1]
    gates += inputs[word, : 2 * hidden]
    gates.sigmoid_()
    torch.mul(gates[:, hidden:], state, out=reset)


def encoder_state(
    gates: Tensor, candidate: Tensor, inputs: Tensor, word: Tensor, state: Tensor
) -> None:
    """Turn h into the state after the word.

    Args:
        gates: (K, 2 H), z in its first half.
        candidate: (K, H) U (r * h).
        inputs: (V, 3 H) the words' products.
        word: (K,) the word that is read.
        state: (K, H) h.
    """
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
    """Turn h' into the state after the word.

    Args:
        recurrent: (K, 3 H) U'_z h', U'_r h', U' h'.
        inputs: (V, 3 H) the words' products.
        word: (K,) the word before.
        summaries: (n, 3 H) C_z c, C_r c, C c.
        source: (K,) the source phrase.
        state: (K, H) h'.
    """
    hidden = state.shape[1]
    of_word = inputs[word]
    recurrent += summaries[source]
    gates = recurrent[:, : 2 * hidden].add_(of_word[:, : 2 * hidden]).sigmoid_()
    z, r = gates[:, :hidden], gates[:, hidden:]
    candidate = torch.addcmul(of_word[:, 2 * hidden :], r, recurrent[:, 2 * hidden :])
    torch.lerp(candidate.tanh_(), state, z, out=state)


def leaky_state(
    products: Tensor,
    inputs: Tensor,
    word: Tensor,
    summaries: Tensor,
    source: Tensor,
    rate: Tensor,
    state: Tensor,
) -> None:
    """Turn the state of leaky units, or of tanh units, into that after the word.

    Args:
        products: (K, H) U h.
        inputs: (V, H) the words' products.
        word: (K,) the word.
        summaries: (n, H) C c.
        source: (K,) the source phrase.
        rate: (H,) how far a unit goes to its new value.
        state: (K, H) h.
    """
    products += summaries[source]
    products += inputs[word]
    torch.lerp(state, products.tanh_(), rate, out=state)


def lstm_state(
    products: Tensor,
    inputs: Tensor,
    word: Tensor,
    summaries: Tensor,
    source: Tensor,
    state: Tensor,
) -> None:
    """Turn the state of LSTM into that after the word.

    Args:
        products: (K, 4 H) of h: input gate, forget gate, output gate, new content.
        inputs: (V, 4 H) the words' products.
        word: (K,) the word.
        summaries: (n, 4 H) of c.
        source: (K,) the source phrase.
        state: (K, 2 H) h, then the memory cells.
    """
    hidden = state.shape[1] // 2
    products += summaries[source]
    products += inputs[word]
    take, keep, show = torch.split(products[:, : 3 * hidden].sigmoid_(), hidden, 1)
    new = products[:, 3 * hidden :].tanh_()
    memory = state[:, hidden:]
    memory.mul_(keep).addcmul_(take, new)
    torch.mul(show, torch.tanh(memory), out=state[:, :hidden])


def maxout(
    pieces: Tensor, inputs: Tensor, word: Tensor, summaries: Tensor, source: Tensor, units: Tensor
) -> None:
    """Write the larger of each two neighbours of s' to `units`.

    Args:
        pieces: (K, 2 S) O_h h'.
        inputs: (V, 2 S) O_y e(y) and the bias.
        word: (K,) the word before.
        summaries: (n, 2 S) O_c c.
        source: (K,) the source phrase.
        units: (K, S).
    """
    pieces += inputs[word]
    pieces += summaries[source]
    torch.amax(torch.unflatten(pieces, 1, (-1, 2)), 2, out=units)


def tanh_in_place(x: Tensor) -> None:
    """Turn x (K, H) into its hyperbolic tangent."""
    x.tanh_()


def add_exps(logits: Tensor, bias: Tensor, top: Tensor, total: Tensor) -> None:
    """Add a part of a sum of exponentials.

    Args:
        logits: (K, V) of a part of the words, without the bias; may be overwritten.
        bias: (V,).
        top: (K,) the largest logit so far.
        total: (K,) the sum of exp(logit - top) so far.
    """
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
    """Add a part of a sum of exponentials, and keep the words with the largest logits.

    Args:
        logits: (K, V) of a part of the words, without the bias, in a short format.
        bias: (V,).
        first: number of the first word of the part.
        top: (K,) the largest logit so far.
        total: (K,) the sum of exp(logit - top) so far.
        best: (K, kept) the largest logits so far, largest first.
        best_word: (K, kept) their words.
    """
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
    """Write the logits of single words to `logits`.

    Args:
        features: (K, R) G_r s.
        words: (V, R) G_l.
        bias: (V,).
        row: (edges,) rows of `features`.
        word: (edges,) words.
        logits: (edges,).
    """
    torch.linalg.vecdot(features[row], words[word], out=logits)
    logits += bias[word]


Function = Callable[..., None]


@dataclass(frozen=True)
class Elementwise:
    """One implementation of the functions of this module."""

    encoder_gates: Function
    encoder_state: Function
    decoder_state: Function
    leaky_state: Function
    lstm_state: Function
    maxout: Function
    tanh_in_place: Function
    add_exps: Function
    add_exps_of_most: Function
    logits_at: Function


def _on_tensors(kernel: Callable[..., None]) -> Function:
    def function(*tensors: Tensor) -> None:
        kernel(*(tensor.numpy() for tensor in tensors))

    return function


def _add_exps_of_most(logits: Tensor, bias: Tensor, first: int, *rest: Tensor) -> None:
    bits = logits.view(torch.int16).numpy()  # numpy has no bfloat16
    kernels.add_exps_of_most(bits, bias.numpy(), first, *(tensor.numpy() for tensor in rest))


IN_TORCH = Elementwise(
    encoder_gates,
    encoder_state,
    decoder_state,
    leaky_state,
    lstm_state,
    maxout,
    tanh_in_place,
    add_exps,
    add_exps_of_most,
    logits_at,
)
COMPILED = Elementwise(
    _on_tensors(kernels.encoder_gates),
    _on_tensors(kernels.encoder_state),
    _on_tensors(kernels.decoder_state),
    _on_tensors(kernels.leaky_state),
    _on_tensors(kernels.lstm_state),
    _on_tensors(kernels.maxout),
    _on_tensors(kernels.tanh_in_place),
    _on_tensors(kernels.add_exps),
    _add_exps_of_most,
    _on_tensors(kernels.logits_at),
)


def elementwise_for(device: torch.device) -> Elementwise:
    """Return the implementation for a device."""
    return COMPILED if device.type == "cpu" else IN_TORCH
