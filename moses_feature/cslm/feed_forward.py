"""A network of two rectified layers as a scorer of words after contexts; free of torch.

The product of a projection and its part of the first layer depends only on the word and its
position, so all these products are computed once: a context then costs a sum of as many vectors as
it has words. The sum over all words, log Z, depends only on the context, and is cached.

Axes: N n-grams, C distinct contexts among them, B bases, F and S units of the two layers, V words.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.kernels import logits_at
from moses_feature.networks.word_softmax import log_sums
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import compiled

F = np.float32


@compiled(floats="contracted")
def first_layer(
    table: Floats32, bases: Floats32, has_base: bool, contexts: NDArray[np.int32], units: Floats32
) -> None:
    """Write max(0, base + the sum of the rows of the context words at their positions).

    Args:
        table: (positions, words, F).
        bases: (bases, F).
        has_base: whether a context begins with the number of its base; else the base is number 0.
        contexts: (n, columns).
        units: (n or more, F), overwritten.
    """
    before = 1 if has_base else 0
    for row in range(len(contexts)):
        own = units[row]
        own[:] = bases[contexts[row, 0]] if has_base else bases[0]
        for column in range(before, contexts.shape[1]):
            of_word = table[column - before, contexts[row, column]]
            for k in range(len(own)):
                own[k] += of_word[k]
        for k in range(len(own)):
            own[k] = max(own[k], F(0.0))


TOGETHER = 512
"""Contexts that are computed together; a score does not depend on the others."""
MOST_REMEMBERED = 1 << 21


class FeedForward:
    """Scores words: natural logs of p(word | context).

    A context is the ids of words in order, preceded by the number of its base if there are several.

    Attributes:
        columns: the width of a context.
        normalised: whether log Z is subtracted; if not, it is near 0 by training.
        weights: the weights of the network, by name.

    Args:
        table: (positions, V or more, F) products of the projections and the first layer.
        bases: (B, F) added to them: the bias of the first layer, and if a context has the number of
            its base, the contribution of other inputs.
        weights: the weights of the second layer and the output.
        normalised: see above.
        has_base: whether a context begins with the number of its base.
    """

    def __init__(
        self,
        table: Floats32,
        bases: Floats32,
        weights: Mapping[str, Floats32],
        normalised: bool,
        has_base: bool = False,
    ) -> None:
        self.columns = len(table) + has_base
        self.normalised = normalised
        self.weights = weights
        self._has_base = has_base
        self._table = table
        self._bases = bases
        self._second = np.ascontiguousarray(weights["second.weight"].T)  # (F, S)
        self._output = np.ascontiguousarray(weights["output.weight"])  # (V, S)
        self._log_norms: dict[bytes, float] = {}

    def use_bases(self, bases: Floats32) -> None:
        """Replace the bases, and clear the cache of log Z."""
        self._bases = np.ascontiguousarray(bases)
        self._log_norms.clear()

    def log_probs(self, contexts: NDArray[np.integer], words: Integers) -> Floats32:
        """Return log p (N,) of words.

        Args:
            contexts: (N, columns).
            words: (N,) ids.
        """
        rows: NDArray[np.int32] = np.ascontiguousarray(contexts, dtype=np.int32)
        words = words.astype(np.int64)
        scores = np.empty(len(words), dtype=np.float32)
        if not len(words):
            return scores
        keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
        distinct, row = np.unique(keys, return_inverse=True)
        features = self._features(distinct.view(np.int32).reshape(len(distinct), -1))
        logits_at(features, self._output, self.weights["output.bias"], row, words, scores)
        if self.normalised:
            scores -= self._norms(distinct.tolist(), features)[row]
        return scores

    def log_norms(self, contexts: NDArray[np.integer]) -> Floats32:
        """Return log Z (N,) of contexts (N, columns)."""
        return self._sums(self._features(np.ascontiguousarray(contexts, dtype=np.int32)))

    def _features(self, contexts: NDArray[np.int32]) -> Floats32:
        """Return the units of the second layer (N, S)."""
        bias = self.weights["second.bias"]
        features = np.empty((len(contexts), len(bias)), dtype=np.float32)
        for start in range(0, len(contexts), TOGETHER):
            rows = contexts[start : start + TOGETHER]
            units = np.empty((len(rows), self._table.shape[2]), dtype=np.float32)
            first_layer(self._table, self._bases, self._has_base, rows, units)
            sums = units @ self._second + bias
            np.maximum(sums, 0.0, out=features[start : start + TOGETHER])
        return features

    def _norms(self, keys: list[bytes], features: Floats32) -> Floats32:
        """Return log Z (C,) of contexts, from the cache if it is known."""
        norms = np.array([self._log_norms.get(key, np.nan) for key in keys], dtype=np.float32)
        new = np.flatnonzero(np.isnan(norms))
        if len(new):
            norms[new] = self._sums(features[new])
            if len(self._log_norms) > MOST_REMEMBERED:
                self._log_norms.clear()
            self._log_norms.update(zip([keys[n] for n in new], norms[new].tolist(), strict=True))
        return norms

    def _sums(self, features: Floats32) -> Floats32:
        """Return the logarithms of the sums of exp(logit) (C,)."""
        bias = self.weights["output.bias"]
        return log_sums(features, self._output, bias).astype(np.float32)


def first_products(projection: Floats32, first: Floats32, positions: int) -> Floats32:
    """Return the products of projections and the first layer (positions, V, F).

    Args:
        projection: (V, P) of each word.
        first: (F, positions * P) weights.
        positions: words of a context.
    """
    parts = np.split(first, positions, axis=1)
    return np.stack([projection @ part.T for part in parts])
