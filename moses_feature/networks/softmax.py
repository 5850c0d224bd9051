"""log p of given words under a softmax, for training.

The exact one has its own gradient: automatic differentiation would keep the logits and their log
probabilities, and fill, scatter and read another array of this size; here one array is kept and
turned into its gradient. `word_sample.py` has the other one, whose sum is estimated.

Axes: N words, R output rank, V words of the vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from moses_feature.networks.word_sample import WordSample, sampled_log_probs

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
            of_words = logits.gather(1, words[:, None])[:, 0]
            log_probs = torch.log_softmax(logits, 1)
            means = (_mean_logits(features, weight, bias),) if smooth else ()
        ctx.save_for_backward(features, short, log_probs, words)
        ctx.bias_type = bias.dtype
        of_each = log_probs.gather(1, words[:, None])[:, 0]
        log_norms = of_words - of_each
        return of_each, log_norms, *(mean - log_norms for mean in means)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        features, weight, log_probs, words = ctx.saved_tensors
        zeros = log_probs.new_zeros(len(words))
        of_word, of_norm, *of_means = (zeros if of is None else of for of in gradients)
        d_logits = log_probs.exp_()  # log_probs is no longer needed: overwrite it
        d_logits.mul_((of_norm - of_word - sum(of_means))[:, None])
        for of_mean in of_means:
            d_logits.add_(of_mean[:, None], alpha=1 / len(weight))
        d_logits.scatter_add_(1, words[:, None], of_word[:, None])
        d_bias = d_logits.sum(0).to(ctx.bias_type)
        d_logits = d_logits.to(features.dtype)
        d_weight = torch.mm(d_logits.t(), features).to(ctx.bias_type)
        return torch.mm(d_logits, weight), d_weight, d_bias, None, None


def _logits(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the logits (N, V), in float32 at least.

    On a CPU in parts: one product of all words takes almost twice the time.
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
