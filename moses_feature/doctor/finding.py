"""A finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MOST_LINES = 2_000_000
"""The default number of lines to read of each text table."""
Severity = Literal["problem", "warning", "note"]
"""A problem makes results wrong or runs fail; a warning may; a note does not."""


@dataclass(frozen=True)
class Finding:
    """A finding.

    Attributes:
        severity: how serious it is.
        where: the file, and the line if there is one.
        what: the fault.
        effect: its consequence.
        remedy: how to mend it.
    """

    severity: Severity
    where: str
    what: str
    effect: str
    remedy: str

    def __str__(self) -> str:
        return (
            f"{self.severity}: {self.where}: {self.what}\n  causes: {self.effect}\n"
            f"  mend:   {self.remedy}"
        )
