"""The limits of the embedded decoder's search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moses_feature.decoder.records import Limits

if TYPE_CHECKING:
    from moses_feature.decoder.system import System

DEFAULT_POPS = 1000
DEFAULT_STACK = 200
"""The defaults of Moses (`moses/TypeDef.h`)."""


@dataclass(frozen=True)
class SearchLimits:
    """The limits of the search; None takes the value of the ini.

    Attributes:
        pops: hypotheses popped from the cubes for each stack.
        stack: hypotheses of a stack that are expanded.
    """

    pops: int | None = None
    stack: int | None = None

    def of(self, system: System) -> Limits:
        """Return the limits for a system, with the ini's values or Moses' defaults for None."""
        return Limits(
            self.pops or system.settings.get("cube-pruning-pop-limit", DEFAULT_POPS),
            self.stack or system.settings.get("stack", DEFAULT_STACK),
            system.distortion_limit,
        )
