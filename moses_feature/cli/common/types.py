"""Types of the values of options: numbers in a range."""

from __future__ import annotations

import math
from typing import Any

import click


class WholeRange(click.IntRange):
    """A whole number in a range; N in the help."""

    name = "N"


POSITIVE = WholeRange(min=1)
NOT_NEGATIVE = WholeRange(min=0)
THREADS = WholeRange(1, 1024)
BATCH = WholeRange(1, 1 << 20)
SEED = WholeRange(0, (1 << 63) - 1)


class FiniteRange(click.FloatRange):
    """A float in a range; click's own lets nan through."""

    name = "X"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert the option's text, and refuse what is not finite."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number

    def _describe_range(self) -> str:
        """Return the range for the help; click's own says None where there is none."""
        return "" if self.min is None and self.max is None else super()._describe_range()


ABOVE_ZERO = FiniteRange(min=0, min_open=True)
ZERO_OR_MORE = FiniteRange(min=0)
ANY_NUMBER = FiniteRange()
SHARE = FiniteRange(0, 1)
