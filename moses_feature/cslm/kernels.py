"""The language model for one n-gram after the other, compiled; for networks of moderate size.

In search, most n-grams are asked one by one, and what is asked depends on what was answered. A
network whose second layer fits into the cache of a core answers at once, in a few microseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Floats32, Integers, Record
from moses_feature.runtime.compiled import compiled, compiler
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
            # Room for a context: (first,) and (first + 1,).
            *("units", "active"),
            # Memory: (places, columns) contexts, and (places, second) their features.
            *("contexts", "features"),
        )
    ]
)
"""A network: sizes and the addresses of arrays, C-contiguous, whose owner must outlive it."""

_exact = compiler(nogil=True, fastmath={"contract"}, error_model="numpy")
_exact_inner = compiler(entry=False, _nrt=False, fastmath={"contract"}, error_model="numpy")
_summing = compiler(entry=False, _nrt=False, fastmath={"contract", "reassoc", "nsz"})


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


@_exact
def first_layer(
    table: Floats32, bases: Floats32, has_base: bool, contexts: NDArray[np.int32], units: Floats32
) -> None:
    """Write max(0, base + the rows of the context words, one of each position).

    Args:
        table: (positions, words, F).
        bases: (bases, F)
        has_base: whether a context begins with the number of its base; else it is the first one.
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
    """Return log p of a word, not normalised: its logit, a natural log.

    Args:
        network: a `NETWORK` record; it remembers the features of the context.
        context: (columns,) ids, the nearest word last.
        word: its id.
    """
    place = _place_of(network, context)
    logit = _product(network, place * network.second, word * network.second)
    return F(logit + _floats_at(network.output_bias)[word])


@_summing
def _product(network: Record, of_context: int, of_word: int) -> np.float32:
    """Return the product of features and of a row of the output weights that begin there."""
    features, output = _floats_at(network.features), _floats_at(network.output)
    total = F(0.0)
    for s in range(network.second):
        total += features[of_context + s] * output[of_word + s]
    return F(total)


@_exact_inner
def _place_of(network: Record, context: NDArray[np.int32]) -> int:
    """Return where the features of a context are remembered, after they were computed."""
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
    """Write the units of the second layer after a context to the features from a place on."""
    _sum_first_layer(network, context)
    # Half of the units are 0 and need no product.
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
    """Write the units of the first layer, before their function."""
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
    """Add the products of so many active units to the features from a place on."""
    second, features = network.second, _floats_at(network.features)
    units, active = _floats_at(network.units), _numbers_at(network.active)
    weight = _floats_at(network.second_weight)
    whole = count - count % 4
    for n in range(0, whole, 4):  # four at a time, for the features stay in registers
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
