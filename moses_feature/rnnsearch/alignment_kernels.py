"""The alignment of RNNsearch, compiled for the CPU; all else is in `networks.kernels`.

Every row is worked on by itself and in the same order, whatever stands beside it.
"""

from __future__ import annotations

import numpy as np

from moses_feature.networks.kernels import exp, sum_of, tanh
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import compiler

F = np.float32

_exact = compiler(nogil=True, fastmath={"contract"}, error_model="numpy")


@_exact
def align(
    queries: Floats32,
    keys: Floats32,
    weight: Floats32,
    source: Integers,
    offsets: Integers,
    alignments: Floats32,
) -> None:
    """Write the probabilities that a state is aligned to each word of its source sentence.

    Args:
        queries: (n, A) W_a s and the bias.
        keys: (positions, A) U_a h of the annotations of all source sentences.
        weight: (A,) v_a.
        source: (n,) the source sentence of each state.
        offsets: (sources + 1,) where the annotations of each begin.
        alignments: (n, longest or more), overwritten as far as the sentence goes.
    """
    units = np.empty(len(weight), dtype=np.float32)
    for row in range(len(queries)):
        first, last = offsets[source[row]], offsets[source[row] + 1]
        query, own = queries[row], alignments[row, : last - first]
        for place in range(last - first):
            key = keys[first + place]
            for k in range(len(units)):
                units[k] = weight[k] * tanh(query[k] + key[k])
            own[place] = sum_of(units)
        highest = own.max()
        total = F(0.0)
        for place in range(len(own)):
            own[place] = exp(own[place] - highest)
            total += own[place]
        for place in range(len(own)):
            own[place] /= total


@_exact
def expect(
    alignments: Floats32,
    values: Floats32,
    source: Integers,
    offsets: Integers,
    contexts: Floats32,
) -> None:
    """Write the means (n, width) of values (positions, width) under alignments."""
    for row in range(len(contexts)):
        context, first = contexts[row], offsets[source[row]]
        context[:] = F(0.0)
        for place in range(offsets[source[row] + 1] - first):
            share, value = alignments[row, place], values[first + place]
            for k in range(len(context)):
                context[k] += share * value[k]
