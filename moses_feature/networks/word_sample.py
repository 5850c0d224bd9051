"""log p of given words under a softmax whose sum is estimated from a sample, for training.

Each word v of the vocabulary is in a sample with its own probability q(v), independently of the
others. For a word w, Z is then estimated by exp(logit of w) + the sum of exp(logit of v) / q(v)
over the words v != w of the sample, whose expectation is Z (Horvitz and Thompson 1952; importance
sampling as in Bengio and Senecal 2003, with one sample for a whole batch as in Jean et al. 2015).

Axes: N words, R output rank, V words of the vocabulary, S words of the sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from moses_feature.networks.vocabulary import END
from moses_feature.runtime.arrays import Floats, Integers

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
    # One gradient for both; that of index_select adds in any order on a GPU.
    rows, own_rows = torch.split(functional.embedding(needed, weight), sizes)
    biases, own_biases = torch.split(functional.embedding(needed, bias[:, None])[:, 0], sizes)
    own = (features.to(wide) * own_rows).sum(1) + own_biases
    with torch.autocast(features.device.type, enabled=False):
        logits = torch.mm(features, rows.to(features.dtype).t()).to(wide)
    logits = logits + (biases - sample.log_q)
    in_sample = sample.place[words]
    found = torch.nonzero(in_sample >= 0)[:, 0]
    logits = logits.index_put((found, in_sample[found]), logits.new_tensor(-torch.inf))
    log_z = torch.logaddexp(torch.logsumexp(logits, 1), own)
    return own - log_z, log_z
