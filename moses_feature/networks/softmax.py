"""log p of given words under a softmax, for training.

The exact one has its own gradient: automatic differentiation would keep the logits and their log
probabilities, and fill, scatter and read another array of this size; here the logits are kept, in
the type of the products, and turned into their gradient. `word_sample.py` has the other one, whose
sum is estimated.

Axes: N words, R output rank, V words of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.graph import increment_version

from moses_feature.networks import softmax_kernels
from moses_feature.networks.computation import array_of, in_threads
from moses_feature.networks.word_sample import WordSample, sampled_log_probs
from moses_feature.runtime.arrays import Floats32

WORDS_TOGETHER = 1024


def word_terms(
    features: Tensor,
    output: nn.Linear,
    words: Tensor,
    sample: WordSample | None = None,
    smooth: bool = False,
) -> tuple[Tensor, ...]:
    """Return log p and log Z (N,) of words, in float32 at least; their gradient only once.

    With `smooth`, also return the mean (N,) of log p over all words of the vocabulary, to smooth
    labels with (Szegedy et al. 2016).

    Args:
        features: (N, R); products are computed in its type, under autocast in that of autocast.
        output: the layer of the logits.
        words: (N,).
        sample: a sample of the vocabulary, to estimate Z; None for exact Z.
        smooth: see above.
    """
    kind = features.device.type
    if torch.is_autocast_enabled(kind):
        features = features.to(torch.get_autocast_dtype(kind))
    given = features, output.weight, output.bias, words
    if sample is None:
        terms: tuple[Tensor, ...] = _WordTerms.apply(*given, smooth)  # type: ignore[no-untyped-call]
        return terms
    log_probs, log_norms = sampled_log_probs(*given, sample)
    if not smooth:
        return log_probs, log_norms
    return log_probs, log_norms, _mean_logits(*given[:3]) - log_norms


def _mean_logits(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the mean (N,) of the logits of all words."""
    return torch.mv(features.to(weight.dtype), weight.mean(0)) + bias.mean()


class _WordTerms(Function):
    """log p, log Z and the mean of log p of given words under softmax(features weight^T + bias)."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, words: Tensor, smooth: bool
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        with torch.autocast(features.device.type, enabled=False):
            short = weight.to(features.dtype)
            logits = _logits(features, short, bias.to(features.dtype))
            log_norms = _log_norms(logits)
            means = (_mean_logits(features, weight, bias),) if smooth else ()
        ctx.save_for_backward(features, short, logits, log_norms, words)
        ctx.bias_type = bias.dtype
        of_words = logits.gather(1, words[:, None])[:, 0].to(log_norms.dtype) - log_norms
        return of_words, log_norms, *(mean - log_norms for mean in means)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        features, weight, logits, log_norms, words = ctx.saved_tensors
        zeros = log_norms.new_zeros(len(words))
        of_word, of_norm, *of_means = (zeros if of is None else of for of in gradients)
        of_mean = torch.stack(of_means).sum(0) if of_means else zeros
        terms = log_norms, of_norm - of_word - of_mean, of_mean / len(weight), of_word
        d_bias = _to_gradient(logits, words, torch.stack(terms, 1)).to(ctx.bias_type)
        d_weight = torch.mm(logits.t(), features).to(ctx.bias_type)
        return torch.mm(logits, weight), d_weight, d_bias, None, None


def _logits(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the logits (N, V).

    On a CPU in parts: one product of all words takes almost twice the time.
    """
    together = WORDS_TOGETHER if features.device.type == "cpu" else len(weight)
    logits = features.new_empty(len(features), len(weight))
    for first in range(0, len(weight), together):
        part = slice(first, first + together)
        torch.addmm(bias[part], features, weight[part].t(), out=logits[:, part])
    return logits


Kernel = Callable[..., None]
COMPILED: dict[torch.dtype, tuple[Kernel, Kernel]] = {
    torch.float32: (softmax_kernels.log_norms, softmax_kernels.to_gradient),
    torch.bfloat16: (softmax_kernels.short_log_norms, softmax_kernels.short_to_gradient),
}
"""What computes log Z and the gradient on a CPU, by the type of the logits."""
FEWEST_ROWS = 64
"""Of a thread."""


def _log_norms(logits: Tensor) -> Tensor:
    """Return log Z (N,), in float32 at least."""
    if not _is_compiled(logits):
        wide = torch.promote_types(logits.dtype, torch.float32)
        return torch.logsumexp(logits.to(wide), 1)
    found = torch.empty(len(logits))
    kernel, arrays = COMPILED[logits.dtype][0], (array_of(logits), array_of(found))
    in_threads(lambda rows: kernel(*(of[rows] for of in arrays)), len(logits), FEWEST_ROWS)
    return found


def _to_gradient(logits: Tensor, words: Tensor, terms: Tensor) -> Tensor:
    """Turn logits into their gradient, and return its sum (V,).

    Args:
        logits: (N, V), overwritten.
        words: (N,).
        terms: (N, 4); see `softmax_kernels.to_gradient`.
    """
    if not _is_compiled(logits):
        log_norms, of_all, constant, of_word = terms[:, :, None].unbind(1)
        turned = (logits - log_norms).exp_().mul_(of_all).add_(constant)
        turned.scatter_add_(1, words[:, None], of_word)
        logits.copy_(turned)
        return turned.sum(0)
    kernel, arrays = COMPILED[logits.dtype][1], [array_of(of) for of in (logits, words, terms)]

    def compute(rows: slice) -> Floats32:
        summed = np.zeros(logits.shape[1], dtype=np.float32)
        kernel(*(of[rows] for of in arrays), summed)
        return summed

    summed = sum(in_threads(compute, len(logits), FEWEST_ROWS))
    increment_version(logits)  # a second gradient is refused, as that of array operations is
    return torch.from_numpy(summed)


def _is_compiled(logits: Tensor) -> bool:
    return logits.device.type == "cpu" and logits.dtype in COMPILED
