"""bfloat16 in compiled code, as its bits in int16: numpy has no such numbers."""

from __future__ import annotations

import numpy as np

from moses_feature.runtime.compiled import compiled

F = np.float32
_SIXTEEN, _HALF, _LOWEST_BIT = np.uint32(16), np.uint32(0x7FFF), np.uint32(1)


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
