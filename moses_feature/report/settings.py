"""The size of a report; free of torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportSettings:
    """The size of a report.

    Attributes:
        words: the number of most frequent words in the map of words.
        phrases: the number of phrases in the map of phrases.
        seed: of samples and maps.
    """

    words: int = 10_000
    phrases: int = 5_000
    seed: int = 1
