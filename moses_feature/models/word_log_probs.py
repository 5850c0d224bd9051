"""log p of given words under a softmax, with its gradient: in training all rows have one word.

Automatic differentiation would keep the logits and their logarithms of probabilities, and fill,
scatter and read another array of this size; here one array is kept and turned into its gradient.

Axes: N words, R output rank, V words of the vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from moses_feature.models.sampled_log_probs import WordSample, sampled_log_probs

WORDS_TOGETHER = 1024


def word_log_probs(features: Tensor, weight: Tensor, bias: Tensor, words: Tensor) -> Tensor:
    """Return log p (N,) of words under softmax(features weight^T + bias), in float32 at least.

    Gradients can be taken once only.

    Args:
        features: (N, R); the products are computed in its type.
        weight: (V, R).
        bias: (V,).
        words: (N,).
    """
    log_probs: Tensor = _WordLogProbs.apply(features, weight, bias, words)  # type: ignore[no-untyped-call]
    return log_probs


def log_probs_and_norms(
    features: Tensor, output: nn.Linear, words: Tensor, sample: WordSample | None = None
) -> tuple[Tensor, Tensor]:
    """Return log p and log Z (N,) of words.

    Args:
        features: (N, R).
        output: the layer of the logits.
        words: (N,).
        sample: of the vocabulary, to estimate Z from; None for all of it.
    """
    given = features, output.weight, output.bias, words
    if sample is not None:
        return sampled_log_probs(*given, sample)
    log_probs = word_log_probs(*given)
    return log_probs, word_logits(*given) - log_probs


def word_logits(features: Tensor, weight: Tensor, bias: Tensor, words: Tensor) -> Tensor:
    """Return the logits (N,) of words, whose log p is less by log Z; see `word_log_probs`."""
    logits: Tensor = (features.to(weight.dtype) * weight[words]).sum(1) + bias[words]
    return logits


class _WordLogProbs(Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, words: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            weight = weight.to(features.dtype)
            logits = _logits(features, weight, bias.to(features.dtype))
            log_probs = torch.log_softmax(logits, 1)
        ctx.save_for_backward(features, weight, log_probs, words)
        ctx.bias_type = bias.dtype
        return log_probs.gather(1, words[:, None])[:, 0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        features, weight, log_probs, words = ctx.saved_tensors
        of_word = gradients[0][:, None]
        d_logits = log_probs.exp_().mul_(-of_word)  # not needed any more: overwritten
        d_logits.scatter_add_(1, words[:, None], of_word)
        d_bias = d_logits.sum(0).to(ctx.bias_type)
        d_logits = d_logits.to(features.dtype)
        d_weight = torch.mm(d_logits.t(), features).to(ctx.bias_type)
        return torch.mm(d_logits, weight), d_weight, d_bias, None


def _logits(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the logits (N, V), in float32 at least.

    Part by part on a CPU: a product of all words at once takes almost twice the time.
    """
    together = WORDS_TOGETHER if features.device.type == "cpu" else len(weight)
    wide = torch.promote_types(features.dtype, torch.float32)
    logits = torch.empty(len(features), len(weight), dtype=wide, device=features.device)
    for first in range(0, len(weight), together):
        part = slice(first, first + together)
        if wide == features.dtype:
            torch.addmm(bias[part], features, weight[part].t(), out=logits[:, part])
        else:
            logits[:, part] = torch.addmm(bias[part], features, weight[part].t())
    return logits
