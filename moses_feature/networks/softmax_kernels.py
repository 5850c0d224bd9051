"""The softmax of training, compiled for the CPU: two passes over the logits instead of twelve.

A row of bfloat16 bits is widened into the cache of a core. Rows are independent of each other.

Axes: N words, V words of the vocabulary.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moses_feature.networks.kernels import exp, ordered, shortened, sum_of_exps, widened
from moses_feature.runtime.arrays import Floats32, Integers
from moses_feature.runtime.compiled import compiled
from moses_feature.runtime.hash_table import copy

F = np.float32
Bits = NDArray[np.int16]
_LEAST = np.int32(-(2**31))


@compiled(floats="contracted")
def widen(bits: Bits, own: Floats32) -> None:
    """Write the numbers (V,) that bits are."""
    for k in range(len(own)):
        own[k] = widened(bits[k])


@compiled(floats="contracted")
def shorten(own: Floats32, bits: Bits) -> None:
    """Write the bits of the nearest bfloat16 numbers (V,)."""
    for k in range(len(own)):
        bits[k] = shortened(own[k])


@compiled(floats="contracted")
def _log_norm(own: Floats32) -> np.float32:
    """Return log Z of logits (V,), which are overwritten."""
    largest = _LEAST
    for k in range(len(own)):
        largest = max(largest, ordered(F(own[k]).view(np.int32)))
    top = np.int32(ordered(largest)).view(F)
    return F(top + np.log(sum_of_exps(own, top)))


@compiled(floats="contracted")
def log_norms(logits: Floats32, found: Floats32) -> None:
    """Write log Z (N,) of logits (N, V)."""
    own = np.empty(logits.shape[1], dtype=np.float32)
    for row in range(len(logits)):
        copy(logits[row], own)
        found[row] = _log_norm(own)


@compiled(floats="contracted")
def short_log_norms(logits: Bits, found: Floats32) -> None:
    """Write log Z (N,) of logits (N, V) in bfloat16."""
    own = np.empty(logits.shape[1], dtype=np.float32)
    for row in range(len(logits)):
        widen(logits[row], own)
        found[row] = _log_norm(own)


@compiled(floats="contracted")
def _row_to_gradient(own: Floats32, word: int, terms: Floats32, summed: Floats32) -> None:
    """Turn a row of logits (V,) into its gradient; see `to_gradient`."""
    log_norm, of_all, constant, of_word = terms
    for k in range(len(own)):
        own[k] = of_all * exp(own[k] - log_norm) + constant
    own[word] += of_word
    for k in range(len(own)):
        summed[k] += own[k]


@compiled(floats="contracted")
def to_gradient(logits: Floats32, words: Integers, terms: Floats32, summed: Floats32) -> None:
    """Turn logits (N, V) into their gradient: of_all p + constant, and of_word at a word.

    Args:
        logits: overwritten.
        words: (N,).
        terms: (N, 4) log Z, of_all, constant and of_word.
        summed: (V,) the sum over the rows is added to it.
    """
    for row in range(len(logits)):
        _row_to_gradient(logits[row], words[row], terms[row], summed)


@compiled(floats="contracted")
def short_to_gradient(logits: Bits, words: Integers, terms: Floats32, summed: Floats32) -> None:
    """Turn logits in bfloat16 into their gradient; see `to_gradient`."""
    own = np.empty(logits.shape[1], dtype=np.float32)
    for row in range(len(logits)):
        widen(logits[row], own)
        _row_to_gradient(own, words[row], terms[row], summed)
        shorten(own, logits[row])
