"""Targets that a network wrote."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Written:
    """A target that a network wrote.

    Attributes:
        ids: of its words in the order in which they were written, END not included.
        log_prob: natural log of p(target | source), END included.
        count: how often it was drawn; 1 if it was searched for.
    """

    ids: tuple[int, ...]
    log_prob: float
    count: int = 1
