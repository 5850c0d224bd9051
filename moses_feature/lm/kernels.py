"""The first layer of the language model, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moses_feature.arrays import Floats32
from moses_feature.compiled import compiler

F = np.float32

_exact = compiler(nogil=True, fastmath={"contract"}, error_model="numpy")


@_exact
def first_layer(
    table: Floats32, bias: Floats32, contexts: NDArray[np.int32], units: Floats32
) -> None:
    """Write max(0, bias + the rows of the context words, one of each position).

    Args:
        table: (positions, words, F).
        bias: (F,)
        contexts: (n, positions) words.
        units: (n or more, F), overwritten.
    """
    for row in range(len(contexts)):
        own = units[row]
        own[:] = bias
        for position in range(contexts.shape[1]):
            of_word = table[position, contexts[row, position]]
            for k in range(len(own)):
                own[k] += of_word[k]
        for k in range(len(own)):
            own[k] = max(own[k], F(0.0))
