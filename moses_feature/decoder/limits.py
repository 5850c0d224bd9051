"""How far the embedded decoder searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moses_feature.decoder.records import Limits

if TYPE_CHECKING:
    from moses_feature.decoder.system import System

DEFAULT_POPS = 1000
DEFAULT_STACK = 200
"""Those of Moses (`moses/TypeDef.h`)."""


@dataclass(frozen=True)
class SearchLimits:
    """How far the search goes; None for what the ini says.

    Attributes:
        pops: hypotheses taken from the cubes for each stack.
        stack: hypotheses of a stack that are expanded.
    """

    pops: int | None = None
    stack: int | None = None

    def of(self, system: System) -> Limits:
        """Return the limits for a system."""
        return Limits(
            self.pops or system.settings.get("cube-pruning-pop-limit", DEFAULT_POPS),
            self.stack or system.settings.get("stack", DEFAULT_STACK),
            system.distortion_limit,
        )
