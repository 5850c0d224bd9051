"""What to train a joint language model on; free of torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JointData:
    """What to train a joint language model on.

    Attributes:
        source, target: files with a sentence on each line, tokenised; line n of one translates
            line n of the other.
        alignment: a file with the links of a pair on each line, source and target place, as
            Moses' training leaves it (`aligned.grow-diag-final-and`).
        shortlist: words of each side that the network knows; all others are UNK.
        min_count: how often a word of a shortlist occurs at least, so that UNK occurs, too.
    """

    source: str
    target: str
    alignment: str
    shortlist: int = 15_000
    min_count: int = 2
