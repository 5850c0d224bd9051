"""Something that the doctor has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["problem", "warning", "note"]
"""A problem makes results wrong or runs fail; a warning may; a note does not."""


@dataclass(frozen=True)
class Finding:
    """Something that was found.

    Attributes:
        severity: how bad it is.
        where: the file, and the line where there is one.
        what: is the case.
        effect: what it will cause.
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
