"""The parts of a network's step that are not matrix products, compiled for the CPU.

A product leaves its result in the cache of a core. The sums of its rows with rows of tables, and
the functions of these sums, are computed here in one pass over each row; a chain of array
operations would pass through memory once for each of them.

Each row is computed independently and in the same order, whatever the other rows are. Numbers of
bfloat16, which numpy does not have, are their bits in int16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Floats, Floats32, Integers
from moses_feature.runtime.compiled import compiled

F = np.float32
_SIXTEEN, _HALF, _LOWEST_BIT = np.uint32(16), np.uint32(0x7FFF), np.uint32(1)  # of bfloat16 bits


@compiled(floats="contracted")
def widened(bits: np.int16) -> np.float32:
    """Return the number that bits are."""
    return np.int32(np.int32(bits) << np.int32(16)).view(F)


@compiled(floats="contracted")
def shortened(number: np.float32) -> np.int16:
    """Return the bits of the nearest bfloat16 number, the even one of two."""
    bits = np.uint32(F(number).view(np.uint32))
    bits = np.uint32(bits + _HALF + ((bits >> _SIXTEEN) & _LOWEST_BIT))
    return np.int16(np.uint16(bits >> _SIXTEEN))


_LOWEST, _HIGHEST = F(-87.0), F(88.0)
_ONE, _TWO = F(1.0), F(2.0)
_LOG2_E = F(1.44269504)
_TO_INTEGER = F(3 << 22)  # adding it leaves the nearest integer in the lowest bits
# 2**x on [-1/2, 1/2]: the polynomial with the least relative error, 7.5e-8.
_P0, _P1, _P2 = F(1.000000072), F(6.931469671e-1), F(2.402211972e-1)
_P3, _P4, _P5 = F(5.550713274e-2), F(9.675541333e-3), F(1.327647178e-3)
_NO_LOGIT = F(-1e30)
_LEAST = np.int32(-(2**31))
_RUN = 128  # logits that are processed together

# Reordering is allowed only in sums.


@compiled(floats="contracted")
def exp(x: np.float32) -> np.float32:
    """Return e**x, x clipped to [-87, 88]."""
    return _exp_of_low(min(x, _HIGHEST))


@compiled(floats="contracted")
def _exp_of_low(x: np.float32) -> np.float32:
    """Return e**x for x up to 88, clipped to -87."""
    x = max(x, _LOWEST)
    shifted = x * _LOG2_E + _TO_INTEGER
    rest = x * _LOG2_E - (shifted - _TO_INTEGER)
    y = F(((((_P5 * rest + _P4) * rest + _P3) * rest + _P2) * rest + _P1) * rest + _P0)
    exponent = np.int32(F(shifted).view(np.int32) << np.int32(23))
    return np.int32(y.view(np.int32) + exponent).view(F)


@compiled(floats="contracted")
def sigmoid(x: np.float32) -> np.float32:
    """Return 1 / (1 + e**-x)."""
    return _ONE / (_ONE + exp(-x))


@compiled(floats="contracted")
def tanh(x: np.float32) -> np.float32:
    """Return the hyperbolic tangent."""
    return _ONE - _TWO / (_ONE + exp(_TWO * x))


@compiled(floats="contracted")
def softmax(x: Floats32) -> None:
    """Turn energies (n,), one at least, into probabilities."""
    highest = x.max()
    total = F(0.0)
    for place in range(len(x)):
        x[place] = exp(x[place] - highest)
        total += x[place]
    for place in range(len(x)):
        x[place] /= total


@compiled(floats="contracted")
def encoder_gates(
    gates: Floats32, inputs: Floats32, word: Integers, state: Floats32, reset: Floats32
) -> None:
    """Turn U_z h, U_r h into z and r, and write r * h to `reset`.

    Args:
        gates: (K, 2 H); z is left in its first half.
        inputs: (V, 3 H) the words' products.
        word: (K,) the word that is read.
        state: (K, H) h.
        reset: (K, H).
    """
    hidden = state.shape[1]
    for row in range(len(state)):
        z, r = gates[row, :hidden], gates[row, hidden:]
        of_word, h, to_reset = inputs[word[row]], state[row], reset[row]
        for k in range(hidden):
            z[k] = sigmoid(z[k] + of_word[k])
        for k in range(hidden):
            to_reset[k] = h[k] * sigmoid(r[k] + of_word[hidden + k])


@compiled(floats="contracted")
def encoder_state(
    gates: Floats32, candidate: Floats32, inputs: Floats32, word: Integers, state: Floats32
) -> None:
    """Turn h into the state after the word.

    Args:
        gates: (K, 2 H), z in its first half.
        candidate: (K, H) U (r * h).
        inputs: (V, 3 H) the words' products.
        word: (K,) the word that is read.
        state: (K, H) h.
    """
    hidden = state.shape[1]
    for row in range(len(state)):
        z, own, of_word, h = gates[row], candidate[row], inputs[word[row]], state[row]
        for k in range(hidden):
            new = tanh(own[k] + of_word[2 * hidden + k])
            h[k] = new + z[k] * (h[k] - new)


@compiled(floats="contracted")
def decoder_state(
    recurrent: Floats32,
    inputs: Floats32,
    word: Integers,
    summaries: Floats32,
    source: Integers,
    state: Floats32,
) -> None:
    """Turn h' into the state after the word.

    Args:
        recurrent: (K, 3 H) U'_z h', U'_r h', U' h'.
        inputs: (V, 3 H) the words' products.
        word: (K,) the word before.
        summaries: (n, 3 H) C_z c, C_r c, C c.
        source: (K,) the source phrase.
        state: (K, H) h'.
    """
    hidden = state.shape[1]
    for row in range(len(state)):
        own, h = recurrent[row], state[row]
        of_word, of_source = inputs[word[row]], summaries[source[row]]
        for k in range(hidden):
            r = sigmoid(own[hidden + k] + of_word[hidden + k] + of_source[hidden + k])
            last = 2 * hidden + k
            new = tanh(of_word[last] + r * (own[last] + of_source[last]))
            z = sigmoid(own[k] + of_word[k] + of_source[k])
            h[k] = new + z * (h[k] - new)


@compiled(floats="contracted")
def maxout(
    pieces: Floats32,
    inputs: Floats32,
    word: Integers,
    summaries: Floats32,
    source: Integers,
    units: Floats32,
) -> None:
    """Write the larger of each pair of neighbours in s' to `units`.

    Args:
        pieces: (K, 2 S) O_h h'.
        inputs: (V, 2 S) O_y e(y) and the bias.
        word: (K,) the word before.
        summaries: (n, 2 S) O_c c.
        source: (K,) the source phrase.
        units: (K, S).
    """
    for row in range(len(units)):
        own, unit = pieces[row], units[row]
        of_word, of_source = inputs[word[row]], summaries[source[row]]
        for k in range(len(unit)):
            left = own[2 * k] + of_word[2 * k] + of_source[2 * k]
            right = own[2 * k + 1] + of_word[2 * k + 1] + of_source[2 * k + 1]
            unit[k] = left if left > right else right


@compiled(floats="contracted")
def tanh_in_place(x: Floats32) -> None:
    """Replace x (K, H) by its hyperbolic tangent."""
    for row in range(len(x)):
        own = x[row]
        for k in range(len(own)):
            own[k] = tanh(own[k])


@compiled(floats="contracted")
def add_exps(logits: Floats32, bias: Floats32, top: Floats32, total: Floats32) -> None:
    """Add the exponentials of some words' logits to a running sum.

    Args:
        logits: (K, V) logits of these words, without the bias; may be overwritten.
        bias: (V,).
        top: (K,) the largest logit so far.
        total: (K,) the sum of exp(logit - top) so far.
    """
    for row in range(len(logits)):
        own = logits[row]
        _raise_top(top, total, row, _add(bias, own))
        total[row] += sum_of_exps(own, top[row])


@compiled(floats="contracted")
def _add(bias: Floats32, logits: Floats32) -> np.float32:
    """Add a bias in place; return the largest sum."""
    largest = _LEAST
    for k in range(len(logits)):
        logit = F(logits[k] + bias[k])
        logits[k] = logit
        largest = max(largest, ordered(logit.view(np.int32)))
    return np.int32(ordered(largest)).view(F)


@compiled(floats="contracted")
def add_exps_of_most(
    logits: NDArray[np.int16],
    bias: Floats32,
    first: int,
    top: Floats32,
    total: Floats32,
    best: Floats32,
    best_word: Integers,
) -> None:
    """Add some words' exponentials to a running sum, and keep the words with the largest logits.

    Args:
        logits: (K, V) logits of these words, without the bias: bfloat16 bits.
        bias: (V,).
        first: the number of the first of these words.
        top: (K,) the largest logit so far.
        total: (K,) the sum of exp(logit - top) so far.
        best: (K, kept) the largest logits so far, largest first.
        best_word: (K, kept) their words.
    """
    own = np.empty(logits.shape[1], dtype=np.float32)
    for row in range(len(logits)):
        highest = _NO_LOGIT
        for start in range(0, len(own), _RUN):
            run = slice(start, start + _RUN)
            highest_of_run = _widen(logits[row, run], bias[run], own[run])
            if highest_of_run > best[row, -1]:
                _keep_best(own[run], first + start, best[row], best_word[row])
            highest = max(highest, highest_of_run)
        _raise_top(top, total, row, highest)
        total[row] += sum_of_exps(own, top[row])


@compiled(floats="contracted")
def _widen(short: NDArray[np.int16], bias: Floats32, logits: Floats32) -> np.float32:
    """Write the sums of short logits and a bias; return the largest one."""
    largest = _LEAST
    for k in range(len(logits)):
        logit = F(widened(short[k]) + bias[k])
        logits[k] = logit
        largest = max(largest, ordered(logit.view(np.int32)))
    return np.int32(ordered(largest)).view(F)


@compiled(floats="contracted")
def _raise_top(top: Floats32, total: Floats32, row: int, highest: np.float32) -> None:
    if highest > top[row]:
        total[row] *= exp(top[row] - highest)
        top[row] = highest


@compiled(floats="contracted")
def sum_of_exps(x: Floats32, shift: np.float32) -> np.float32:
    """Return the sum of exp(x - shift), where shift >= x; x is overwritten."""
    for k in range(len(x)):
        x[k] = _exp_of_low(x[k] - shift)
    return sum_of(x)


@compiled(floats="contracted")
def sum_of(x: Floats32) -> np.float32:
    """Return the sum of x, which is overwritten.

    Halves are added up, always in this order: if the compiler chose the order, it could choose
    another one for each compiled copy, and which copy runs depends on what else the process has
    compiled or loaded from the cache.
    """
    count = len(x)
    while count > 1:
        kept = (count + 1) >> 1
        left, right = x[: count - kept], x[kept:count]
        for k in range(len(left)):
            left[k] += right[k]
        count = kept
    total: np.float32 = x[0]
    return total


@compiled(floats="contracted")
def best_words(log_probs: Floats, first: int, best: Floats, best_word: Integers) -> None:
    """Find the likeliest words from one on.

    Args:
        log_probs: (K, V) of all words.
        first: the word.
        best: (K, kept) the largest log p, largest first; overwritten.
        best_word: (K, kept) their words; overwritten.
    """
    best[:] = -np.inf
    best_word[:] = first
    for row in range(len(log_probs)):
        _keep_best(log_probs[row, first:], first, best[row], best_word[row])


@compiled(floats="contracted")
def _keep_best(logits: NDArray[Any], first: int, best: NDArray[Any], best_word: Integers) -> None:
    """Insert large logits among the best ones, largest first."""
    for k in range(len(logits)):
        if logits[k] > best[-1]:
            place = len(best) - 1
            while place > 0 and best[place - 1] < logits[k]:
                best[place], best_word[place] = best[place - 1], best_word[place - 1]
                place -= 1
            best[place], best_word[place] = logits[k], first + k


@compiled(floats="contracted")
def ordered(bits: np.int32) -> np.int32:
    """Map the bits of a float to an integer of the same order, and back.

    The largest integer is found faster than the largest float.
    """
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@compiled(floats="reordered")
def logits_at(
    features: Floats32,
    words: Floats32,
    bias: Floats32,
    row: Integers,
    word: Integers,
    logits: Floats32,
) -> None:
    """Write the logits of single words to `logits`.

    Args:
        features: (K, R) G_r s.
        words: (V, R) G_l.
        bias: (V,).
        row: (edges,) rows of `features`.
        word: (edges,) words.
        logits: (edges,).
    """
    for edge in range(len(row)):
        f, w = features[row[edge]], words[word[edge]]
        product = F(0.0)
        for k in range(len(f)):
            product += f[k] * w[k]
        logits[edge] = product + bias[word[edge]]
