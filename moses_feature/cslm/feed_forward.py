"""A network of two rectified layers as a scorer of words after contexts; free of torch.

The product of a projection and its part of the first layer depends only on the word and its
position, so all these products are computed once: a context then costs a sum of as many vectors as
it has words. The sum over all words, log Z, depends only on the context, and is cached.

In search, most n-grams are scored one by one, as each request depends on earlier scores. A network
whose second layer fits into the cache of a core is evaluated by compiled code, in a few
microseconds.

Axes: N n-grams, C distinct contexts among them, B bases, F and S units of the two layers, V words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from moses_feature.networks.kernels import add_exps, logits_at
from moses_feature.networks.products import Matrix
from moses_feature.runtime.arrays import Floats32, Integers, Record, Records
from moses_feature.runtime.compiled import compiled, compiler, exact
from moses_feature.runtime.hash_table import first_place, mixed

F = np.float32

NETWORK = np.dtype(
    [
        (name, np.int64)
        for name in (
            # Sizes: numbers of a context; 1 if the first of them is that of its base, else 0; words
            # that are known, units of the layers; places of the memory, a power of two.
            *("columns", "has_base", "words", "first", "second", "places"),
            # Addresses: (positions, words, first) the products of projections and the first layer;
            # (bases, first); (first, second); (second,); (words or less, second);
            # (words or less,).
            *("table", "bases", "second_weight", "second_bias", "output", "output_bias"),
            # Scratch memory for a context: (first,) and (first + 1,).
            *("units", "active"),
            # Cache: (places, columns) contexts, and (places, second) their features.
            *("contexts", "features"),
        )
    ]
)
"""A network: sizes and the addresses of arrays, C-contiguous, whose owner must outlive it."""

_exact_inner = compiler(
    entry=False, counts_references=False, fastmath={"contract"}, error_model="numpy"
)
_summing = compiler(entry=False, counts_references=False, fastmath={"contract", "reassoc", "nsz"})


def _pointer_to(element: Any) -> Any:
    def cast(typing_context: Any, address: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        pointer: Any = types.CPointer(element)  # type: ignore[no-untyped-call]
        return pointer(types.int64), generate

    return intrinsic(cast)


_floats_at: Any = _pointer_to(types.float32)
_ids_at: Any = _pointer_to(types.int32)
_numbers_at: Any = _pointer_to(types.int64)


@exact
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


@_exact_inner
def log_prob(network: Record, context: NDArray[np.int32], word: int) -> np.float32:
    """Return log p of a word (natural log), not normalised: its logit.

    Args:
        network: a `NETWORK` record; it caches the features of the context.
        context: (columns,) ids, the nearest word last.
        word: the id of the word.
    """
    place = _place_of(network, context)
    logit = _product(network, place * network.second, word * network.second)
    return F(logit + _floats_at(network.output_bias)[word])


@_summing
def _product(network: Record, of_context: int, of_word: int) -> np.float32:
    """Return the product of features and a row of the output weights, at two addresses."""
    features, output = _floats_at(network.features), _floats_at(network.output)
    total = F(0.0)
    for s in range(network.second):
        total += features[of_context + s] * output[of_word + s]
    return F(total)


@_exact_inner
def _place_of(network: Record, context: NDArray[np.int32]) -> int:
    """Return where the features of a context are cached; compute them if they are not."""
    contexts = _ids_at(network.contexts)
    hashed = 0
    for position in range(len(context)):
        hashed = mixed(hashed, context[position])
    place: int = first_place(hashed, network.places)
    known = True
    for position in range(len(context)):
        known = known and contexts[place * network.columns + position] == context[position]
    if not known:
        for position in range(len(context)):
            contexts[place * network.columns + position] = context[position]
        _compute_features(network, context, place * network.second)
    return place


@_exact_inner
def _compute_features(network: Record, context: NDArray[np.int32], begin: int) -> None:
    """Write the units of the second layer after a context to the features from `begin` on."""
    _sum_first_layer(network, context)
    # Half of the units are 0 and can be left out.
    units, active = _floats_at(network.units), _numbers_at(network.active)
    count = 0
    for k in range(network.first):
        active[count] = k
        count += units[k] > F(0.0)
    bias, features = _floats_at(network.second_bias), _floats_at(network.features)
    for s in range(network.second):
        features[begin + s] = bias[s]
    _add_second_layer(network, begin, count)
    for s in range(network.second):
        features[begin + s] = max(features[begin + s], F(0.0))


@_exact_inner
def _sum_first_layer(network: Record, context: NDArray[np.int32]) -> None:
    """Write the units of the first layer, before the rectifier."""
    first, units = network.first, _floats_at(network.units)
    table, bases = _floats_at(network.table), _floats_at(network.bases)
    before = network.has_base
    base = context[0] * first if before == 1 else 0
    for k in range(first):
        units[k] = bases[base + k]
    for column in range(before, len(context)):
        row = ((column - before) * network.words + context[column]) * first
        for k in range(first):
            units[k] += table[row + k]


@_exact_inner
def _add_second_layer(network: Record, begin: int, count: int) -> None:
    """Add the products of `count` active units to the features from `begin` on."""
    second, features = network.second, _floats_at(network.features)
    units, active = _floats_at(network.units), _numbers_at(network.active)
    weight = _floats_at(network.second_weight)
    whole = count - count % 4
    for n in range(0, whole, 4):  # four at a time: the features stay in registers
        a, b, c, d = active[n], active[n + 1], active[n + 2], active[n + 3]
        of_a, of_b, of_c, of_d = units[a], units[b], units[c], units[d]
        a, b, c, d = a * second, b * second, c * second, d * second
        for s in range(second):
            features[begin + s] += (
                of_a * weight[a + s]
                + of_b * weight[b + s]
                + of_c * weight[c + s]
                + of_d * weight[d + s]
            )
    for n in range(whole, count):
        a = active[n]
        of_a = units[a]
        for s in range(second):
            features[begin + s] += of_a * weight[a * second + s]


@compiled
def log_probs_of(
    network: Record, contexts: NDArray[np.int32], words: Integers, scores: Floats32
) -> None:
    """Write `log_prob` of words (n,) after contexts (n, columns) to scores (n,)."""
    for row in range(len(words)):
        scores[row] = log_prob(network, contexts[row], words[row])


TOGETHER = 512
"""Contexts that are computed together; a score does not depend on the others."""
MOST_REMEMBERED = 1 << 21
MOST_AT_ONCE = 1 << 17
"""The most weights of a second layer that stay in the cache of a core (512 KiB)."""
PLACES = 1 << 14
"""The number of contexts whose features a small network caches."""
NO_LOGIT = -1e30


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
        self._second = Matrix(weights["second.weight"].T)  # (F, S)
        self._output = np.ascontiguousarray(weights["output.weight"])  # (V, S)
        self._words = Matrix(self._output.T)
        self._log_norms: dict[bytes, float] = {}
        self._network = (
            self._as_network() if weights["second.weight"].size <= MOST_AT_ONCE else None
        )

    @property
    def network(self) -> Records | None:
        """The `NETWORK` record (1,) of a small model whose scores are not normalised; else None.

        It is valid as long as the model, until the model gets other bases.
        """
        return None if self.normalised else self._network

    def use_bases(self, bases: Floats32) -> None:
        """Replace the bases, and clear the caches."""
        self._bases = np.ascontiguousarray(bases)
        self._log_norms.clear()
        if self._network is not None:
            self._network["bases"] = self._bases.ctypes.data
            self._of_network["contexts"][:] = -1

    def _as_network(self) -> Records:
        """Return the record of the model for compiled code."""
        _, words, first = self._table.shape
        second = len(self.weights["second.weight"])
        arrays = {
            "table": self._table,
            "bases": self._bases,
            "second_weight": self.weights["second.weight"].T,
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
        # Keep the arrays, since the record has only their addresses.
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
        bias = self.weights["second.bias"]
        features = np.empty((len(contexts), len(bias)), dtype=np.float32)
        for start in range(0, len(contexts), TOGETHER):
            rows = contexts[start : start + TOGETHER]
            units = np.empty((len(rows), self._table.shape[2]), dtype=np.float32)
            first_layer(self._table, self._bases, self._has_base, rows, units)
            sums = self._second.product(units) + bias
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
        sums = np.empty(len(features), dtype=np.float32)
        for start in range(0, len(features), TOGETHER):
            block = features[start : start + TOGETHER]
            top = np.full(len(block), NO_LOGIT, dtype=np.float32)
            total = np.zeros(len(block), dtype=np.float32)
            for logits, words in self._words.products(block):
                add_exps(logits, self.weights["output.bias"][words], top, total)
            sums[start : start + TOGETHER] = np.log(total) + top
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
