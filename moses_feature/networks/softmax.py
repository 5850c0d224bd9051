"""log p of given words under a softmax, for training: exact, or with an estimated sum.

Exact, with its own gradient, if each row has one word: automatic differentiation would keep the
logits and their log probabilities, and fill, scatter and read another array of this size; here one
array is kept and turned into its gradient.

Estimated: each word v of the vocabulary is in a sample with its own probability q(v), independently
of the others. For a word w, Z is then estimated by exp(logit of w) + the sum of
exp(logit of v) / q(v) over the words v != w of the sample, whose expectation is Z (Horvitz and
Thompson 1952; importance sampling as in Bengio and Senecal 2003, with one sample for a whole batch
as in Jean et al. 2015).

Axes: N words, R output rank, V words of the vocabulary, S words of the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function

from moses_feature.networks.vocabulary import END
from moses_feature.runtime.arrays import Floats, Integers

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


POWER = 0.75
"""The power of a word's frequency to which its inclusion probability is proportional."""


@dataclass(frozen=True)
class WordSample:
    """A sample of the vocabulary.

    Attributes:
        words: (S,) ascending.
        log_q: (S,) natural logs of their inclusion probabilities.
        place: (V,) the index of each word in `words`; -1 if it is not in the sample.
    """

    words: Tensor
    log_q: Tensor
    place: Tensor


class WordSampler:
    """Draws samples of the vocabulary, frequent words more often.

    Args:
        counts: (V,) counts of the words in the training data.
        size: the expected number of words in a sample.
        seed: the seed of the samples.
        device: the device of the samples.
    """

    def __init__(self, counts: Integers, size: int, seed: int, device: torch.device) -> None:
        self._q = inclusion_probabilities(counts, size)
        self._seed = seed
        self._device = device

    def sample(self, update: int) -> WordSample:
        """Return the sample of an update."""
        drawn = np.random.default_rng([self._seed, update]).random(len(self._q)) < self._q
        words = np.flatnonzero(drawn)
        place = np.full(len(self._q), -1)
        place[words] = np.arange(len(words))
        arrays = words, np.log(self._q[words]).astype(np.float32), place
        return WordSample(*(torch.from_numpy(array).to(self._device) for array in arrays))


def inclusion_probabilities(counts: Integers, size: int) -> Floats:
    """Return the probability (V,) of each word to be in a sample; they sum up to its size.

    It is proportional to a power of the count, at most 1; END is always in the sample.
    """
    if size >= len(counts):
        return np.ones(len(counts))
    wanted = (counts + 1.0) ** POWER
    wanted[END] = np.inf
    certain = np.zeros(len(counts), dtype=bool)
    while True:  # each round finds more words that are certain to be in the sample
        rest = wanted[~certain]
        q = np.ones(len(counts))
        with np.errstate(invalid="ignore"):
            q[~certain] = rest * ((size - np.count_nonzero(certain)) / rest.sum())
        above = ~certain & ~(q < 1)
        if not above.any():
            return q
        certain |= above


def sampled_log_probs(
    features: Tensor, weight: Tensor, bias: Tensor, words: Tensor, sample: WordSample
) -> tuple[Tensor, Tensor]:
    """Return log p and log Z (N,) of words, with Z estimated, in float32 at least.

    Args:
        features: (N, R); the products are computed in its type.
        weight: (V, R).
        bias: (V,).
        words: (N,).
        sample: the sample for all of them.
    """
    wide = torch.promote_types(features.dtype, torch.float32)
    needed, sizes = torch.cat([sample.words, words]), [len(sample.words), len(words)]
    rows, own_rows = torch.split(weight.index_select(0, needed), sizes)  # one gradient for both
    biases, own_biases = torch.split(bias.index_select(0, needed), sizes)
    own = (features.to(wide) * own_rows).sum(1) + own_biases
    with torch.autocast(features.device.type, enabled=False):
        logits = torch.mm(features, rows.to(features.dtype).t()).to(wide)
    logits = logits + (biases - sample.log_q)
    in_sample = sample.place[words]
    found = torch.nonzero(in_sample >= 0)[:, 0]
    logits = logits.index_put((found, in_sample[found]), logits.new_tensor(-torch.inf))
    log_z = torch.logaddexp(torch.logsumexp(logits, 1), own)
    return own - log_z, log_z
