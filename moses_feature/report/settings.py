"""How large a report is; free of torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportSettings:
    """How large a report is.

    Attributes:
        words: of the map of words, the most frequent ones.
        phrases: of the map of phrases.
        seed: of samples and maps.
    """

    words: int = 10_000
    phrases: int = 5_000
    seed: int = 1
