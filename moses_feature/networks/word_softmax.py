"""log p of words after rows of features, on the CPU; free of torch."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from moses_feature.networks.datastores import Datastores
from moses_feature.networks.kernels import add_exps, logits_at
from moses_feature.networks.products import Matrix
from moses_feature.runtime.arrays import Floats, Floats32, Integers

NO_LOGIT = -1e30


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
        self._matrix = Matrix(weight.T)
        self._normalised = normalised

    @cached_property
    def out_of_context(self) -> Floats:
        """Log p (V,) of all words after features of zeros: how frequent they are, about."""
        nothing = np.zeros((1, self.units), dtype=np.float32)
        log_probs: Floats = self.all(nothing)[0]
        return log_probs

    def at(
        self,
        features: Floats32,
        row: Integers,
        word: Integers,
        datastores: Datastores | None = None,
    ) -> Floats:
        """Return log p (n,) of words, each of which follows a row of features (N, S)."""
        logits = np.empty(len(row), dtype=np.float32)
        logits_at(features, self._weight, self._bias, row, word, logits)
        log_probs: Floats = logits.astype(np.float64)
        if self._normalised:
            log_probs -= self._log_sums(features)[row]
        if datastores is not None:
            datastores.mix_at(features, row, word, log_probs)
        return log_probs

    def all(self, features: Floats32, datastores: Datastores | None = None) -> Floats:
        """Return log p (N, V) of all words after features (N, S), always normalised."""
        log_probs = np.empty((len(features), len(self._weight)))
        log_probs -= self._log_sums(features, log_probs)[:, None]
        if datastores is not None:
            datastores.mix_all(features, log_probs)
        return log_probs

    def _log_sums(self, features: Floats32, all_logits: Floats | None = None) -> Floats:
        """Return the logarithms of the sums of exp(logit) over all words (N,).

        The logits are written to `all_logits` (N, V), if it is given.
        """
        rows = len(features)
        top, total = np.full(rows, NO_LOGIT, dtype=np.float32), np.zeros(rows, dtype=np.float32)
        for logits, columns in self._matrix.products(features):
            if all_logits is not None:
                all_logits[:, columns] = logits + self._bias[columns]
            add_exps(logits, self._bias[columns], top, total)
        sums: Floats = np.log(total.astype(np.float64)) + top.astype(np.float64)
        return sums
