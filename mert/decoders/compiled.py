"""How the decoder's inner functions are compiled."""

from __future__ import annotations

from numba import njit

compiled = njit(cache=True)
"""For functions that allocate arrays."""

inner = njit(cache=True, _nrt=False)  # type: ignore[call-overload]
"""For functions that do not: without counting references to the arrays they are given.

Counting them takes atomic operations at every use of a member of a tuple of arrays, more time
than the search itself.
"""
