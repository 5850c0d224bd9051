"""A metric: how hypotheses are counted, and the quality of summed counts.

Quality is 0 to 1, and higher is better; error rates may be below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.compiled import KEPT, compiled

Tokens = Sequence[bytes]
Formula = Any
"""A compiled function that compiled functions take as an argument; see `formula`."""


def formula(function: Callable[[Floats], float]) -> Formula:
    """Compile the formula of a metric: from summed statistics (width,) to its quality."""
    signature = numba.float64(numba.float64[::1])
    return numba.cfunc(signature, cache=KEPT is not None, error_model="numpy")(function)


class ReferenceStatistics(Protocol):
    """The reference translations of a sentence, against which hypotheses are counted."""

    def statistics(self, hypotheses: Sequence[Tokens]) -> Integers:
        """Return the statistics (n, width) of n hypotheses."""


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        name: its name for users.
        label: its name in outputs.
        references: makes an object that counts hypotheses against the references of a sentence.
        background: (width,) the statistics with which MIRA begins, so that the quality of a single
            sentence means something. The last one counts words of references, or letters.
        formula: the quality of summed statistics, in compiled code.
        is_error: it is shown as errors, lower is better.
        describe: describes exactly what is shown, like sacreBLEU's signatures.
        smoothed: the quality (n,) of single sentences from their statistics (n, width), where it
            is not that of a text of one sentence.
    """

    name: str
    label: str
    references: Callable[[Sequence[Tokens]], ReferenceStatistics]
    background: tuple[float, ...]
    formula: Formula
    is_error: bool
    describe: str
    smoothed: Callable[[NDArray[np.number]], Floats] | None = None

    @property
    def width(self) -> int:
        """The number of statistics of a hypothesis."""
        return len(self.background)

    def shown(self, quality: float) -> float:
        """Return the metric for a quality, usually 0 to 100."""
        return 100.0 * (1.0 - quality) if self.is_error else 100.0 * quality

    def quality(self, statistics: NDArray[np.number]) -> float:
        """Return the quality of summed statistics (width,)."""
        return float(self.qualities(statistics[None])[0])

    def qualities(self, statistics: NDArray[np.number]) -> Floats:
        """Return the quality (n,) of n texts from their summed statistics (n, width)."""
        found: Floats = _qualities(self.formula, np.ascontiguousarray(statistics, np.float64))
        return found

    def of_sentences(self, statistics: NDArray[np.number]) -> Floats:
        """Return the quality (n,) of single sentences from their statistics (n, width)."""
        return (self.smoothed or self.qualities)(statistics)


@compiled
def _qualities(formula: Formula, statistics: Floats) -> Floats:
    found = np.empty(len(statistics))
    for row in range(len(statistics)):
        found[row] = formula(statistics[row])
    return found
