"""log p of words after rows of features, on the CPU; free of torch."""

from __future__ import annotations

import numpy as np

from moses_feature.networks.kernels import add_exps, logits_at
from moses_feature.runtime.arrays import Floats, Floats32, Integers

NO_LOGIT = -1e30
ROWS, WORDS = 512, 1024
"""Rows and words whose logits are computed together and stay in the cache of a core."""


def log_sums(
    features: Floats32, output: Floats32, bias: Floats32, all_logits: Floats | None = None
) -> Floats:
    """Return the logarithms of the sums of exp(logit) over all words (N,).

    Args:
        features: (N, S).
        output: (V, S).
        bias: (V,).
        all_logits: (N, V), receives the logits.
    """
    top, total = np.full(len(features), NO_LOGIT, np.float32), np.zeros(len(features), np.float32)
    for row in range(0, len(features), ROWS):
        rows = slice(row, row + ROWS)
        for word in range(0, len(output), WORDS):
            words = slice(word, word + WORDS)
            # OpenBLAS may set this flag for finite numbers (numpy's issues 13173 and 24067).
            with np.errstate(invalid="ignore"):
                logits = features[rows] @ output[words].T
            if all_logits is not None:
                all_logits[rows, words] = logits + bias[words]
            add_exps(logits, bias[words], top[rows], total[rows])
    sums: Floats = np.log(total.astype(np.float64)) + top
    return sums


class WordSoftmax:
    """The last layer of a network: p(word) is proportional to exp(weight features + bias).

    Args:
        weight: (V, S).
        bias: (V,).
        normalised: whether log Z is subtracted; if not (it is near 0 by training), no sum is
            needed, which is half of the work.

    Attributes:
        units: S.
    """

    def __init__(self, weight: Floats32, bias: Floats32, normalised: bool) -> None:
        self.units = weight.shape[1]
        self._weight = np.ascontiguousarray(weight)
        self._bias = bias
        self._normalised = normalised

    def at(self, features: Floats32, row: Integers, word: Integers) -> Floats:
        """Return log p (n,) of words, each of which follows a row of features (N, S)."""
        logits = np.empty(len(row), dtype=np.float32)
        logits_at(features, self._weight, self._bias, row, word, logits)
        log_probs: Floats = logits.astype(np.float64)
        if self._normalised:
            log_probs -= log_sums(features, self._weight, self._bias)[row]
        return log_probs

    def all(self, features: Floats32) -> Floats:
        """Return log p (N, V) of all words after features (N, S), always normalised."""
        log_probs = np.empty((len(features), len(self._weight)))
        log_probs -= log_sums(features, self._weight, self._bias, log_probs)[:, None]
        return log_probs
