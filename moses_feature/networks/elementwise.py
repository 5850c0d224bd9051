"""The kernels, called with tensors in place of arrays."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from moses_feature.networks import kernels


def _on_tensors(kernel: Callable[..., None]) -> Callable[..., None]:
    def function(*tensors: Tensor) -> None:
        kernel(*(tensor.numpy() for tensor in tensors))

    return function


encoder_gates = _on_tensors(kernels.encoder_gates)
encoder_state = _on_tensors(kernels.encoder_state)
decoder_state = _on_tensors(kernels.decoder_state)
leaky_state = _on_tensors(kernels.leaky_state)
lstm_state = _on_tensors(kernels.lstm_state)
maxout = _on_tensors(kernels.maxout)
tanh_in_place = _on_tensors(kernels.tanh_in_place)
add_exps = _on_tensors(kernels.add_exps)
logits_at = _on_tensors(kernels.logits_at)


def add_exps_of_most(logits: Tensor, bias: Tensor, first: int, *rest: Tensor) -> None:
    """See `kernels.add_exps_of_most`; `logits` is in bfloat16."""
    bits = logits.view(torch.int16).numpy()  # numpy has no bfloat16
    kernels.add_exps_of_most(bits, bias.numpy(), first, *(tensor.numpy() for tensor in rest))
