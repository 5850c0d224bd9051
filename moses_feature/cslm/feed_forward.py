"""A network of two rectified layers as a scorer of words after contexts; free of torch.

The product of a projection and its part of the first layer depends on the word and its position
alone, so that all these products are computed once: a context then costs a sum of as many vectors
as it has words. The sum over all words, log Z, belongs to the context; it is remembered.

Axes: N n-grams, C distinct contexts among them, B bases, F and S units of the two layers, V words.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from moses_feature.cslm.kernels import NETWORK, first_layer, log_probs_of
from moses_feature.networks.kernels import add_exps, logits_at
from moses_feature.runtime.arrays import Floats32, Integers, Records

ROWS = 64
"""Contexts of a product. Always the same, so that a score does not depend on those beside it."""
WORDS_TOGETHER = 1024
MOST_REMEMBERED = 1 << 21
MOST_AT_ONCE = 1 << 17
"""Weights of a second layer that stay in the cache of a core (512 KiB)."""
PLACES = 1 << 14
"""Contexts whose features a small network remembers."""
NO_LOGIT = -1e30


class FeedForward:
    """Scores words: natural logs of p(word | context).

    A context is the ids of words, in order; before them the number of its base, if there are
    several.

    Attributes:
        columns: numbers of a context.
        normalised: whether log Z is subtracted; if not, it was trained to be near 0.
        weights: of the network, by name.

    Args:
        table: (positions, V or more, F) products of the projections and the first layer.
        bases: (B, F) what is added to them: the bias of the first layer, and where a context has
            the number of its base, what else is known.
        weights: with the second layer and the output.
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
        self._network = self._as_network() if self._second.size <= MOST_AT_ONCE else None

    @property
    def network(self) -> Records | None:
        """The `NETWORK` record (1,) of a small model whose scores are not normalised; else None.

        It lives as long as the model, and until it has other bases.
        """
        return None if self.normalised else self._network

    def use_bases(self, bases: Floats32) -> None:
        """Take other bases, and forget what was known of the old ones."""
        self._bases = np.ascontiguousarray(bases)
        self._log_norms.clear()
        if self._network is not None:
            self._network["bases"] = self._bases.ctypes.data
            self._of_network["contexts"][:] = -1

    def _as_network(self) -> Records:
        """Return the model for compiled code."""
        _, words, first = self._table.shape
        second = self._second.shape[1]
        arrays = {
            "table": self._table,
            "bases": self._bases,
            "second_weight": self._second,
            "second_bias": self.weights["second.bias"],
            "output": self._output,
            "output_bias": self.weights["output.bias"],
            "units": np.empty(first, dtype=np.float32),
            "active": np.empty(first + 1, dtype=np.int64),
            "contexts": np.full((PLACES, self.columns), -1, dtype=np.int32),
            "features": np.empty((PLACES, second), dtype=np.float32),
        }
        sizes = {
            "columns": self.columns,
            "has_base": self._has_base,
            "words": words,
            "first": first,
            "second": second,
            "places": PLACES,
        }
        record = np.zeros(1, dtype=NETWORK)
        for name, size in sizes.items():
            record[name] = size
        # They are kept, for the record has no more than their addresses.
        self._of_network = {name: np.ascontiguousarray(of) for name, of in arrays.items()}
        for name, array in self._of_network.items():
            record[name] = array.ctypes.data
        return record

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
        if self.network is not None:
            log_probs_of(self.network[0], rows, words, scores)
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
        count = len(contexts)
        features = np.empty((-(-count // ROWS) * ROWS, self._second.shape[1]), dtype=np.float32)
        units = np.zeros((ROWS, self._second.shape[0]), dtype=np.float32)
        for start in range(0, count, ROWS):
            rows = contexts[start : start + ROWS]
            first_layer(self._table, self._bases, self._has_base, rows, units)
            block = features[start : start + ROWS]
            np.matmul(units, self._second, out=block)
            block += self.weights["second.bias"]
            np.maximum(block, 0.0, out=block)
        return features[:count]

    def _norms(self, keys: list[bytes], features: Floats32) -> Floats32:
        """Return log Z (C,) of contexts, from memory where it is known."""
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
        sums = np.empty(len(features), dtype=np.float32)
        operand = np.zeros((ROWS, features.shape[1]), dtype=np.float32)
        for start in range(0, len(features), ROWS):
            block = features[start : start + ROWS]
            operand[: len(block)] = block
            top = np.full(ROWS, NO_LOGIT, dtype=np.float32)
            total = np.zeros(ROWS, dtype=np.float32)
            for first in range(0, len(self._output), WORDS_TOGETHER):
                part = slice(first, first + WORDS_TOGETHER)
                logits = operand @ self._output[part].T
                add_exps(logits, self.weights["output.bias"][part], top, total)
            sums[start : start + ROWS] = (np.log(total) + top)[: len(block)]
        return sums


def first_products(projection: Floats32, first: Floats32, positions: int) -> Floats32:
    """Return the products of projections and the first layer (positions, V, F).

    Args:
        projection: (V, P) of each word.
        first: (F, positions * P) weights.
        positions: words of a context.
    """
    parts = np.split(first, positions, axis=1)
    return np.stack([projection @ part.T for part in parts])
