"""The lines of pairs that no corpus has counted: a stated rule fills their scores."""

from __future__ import annotations

import math
from collections.abc import Mapping

from moses_feature.tables.lexical import LexicalWeights, Links
from moses_feature.tables.settings import is_probability

PROPOSED_COLUMN = "exp(proposed)"
FLAG, NO_FLAG = f"{math.e:.6g}".encode(), b"1"
LEXICAL_COLUMNS = 1, 3
"""Of a table that Moses' training made: lex(source | target) and lex(target | source)."""


class ProposedLines:
    """Makes the lines.

    The network's p(target | source) stands in all columns of probabilities, lexical weights in
    theirs if they are known, e^0 for counts of unknown words, and the flag in the last one.

    Args:
        scores: of the lines of the table, without the flag.
        augmented: the columns that a network has added to it, by name.
        lexical: for the lexical weights; None if they are not known.
    """

    def __init__(
        self, scores: int, augmented: Mapping[str, int], lexical: LexicalWeights | None
    ) -> None:
        others = {place for name, place in augmented.items() if not is_probability(name)}
        self._is_probability = [place not in others for place in range(scores)]
        self._lexical = lexical

    def line(self, source: bytes, target: bytes, log_prob: float, links: Links) -> bytes:
        """Return the line of a pair.

        Args:
            source: one space between words.
            target: one space between words.
            log_prob: natural log of the network's p(target | source).
            links: places of linked words, of the source first.
        """
        probability = math.exp(log_prob)
        values = [probability if is_one else 1.0 for is_one in self._is_probability]
        if self._lexical is not None:
            weights = self._lexical.of_pair(source.split(b" "), target.split(b" "), links)
            for column, weight in zip(LEXICAL_COLUMNS, weights, strict=True):
                values[column] = weight
        scores = b" ".join(b"%.6g" % value for value in values)
        alignment = b" ".join(b"%d-%d" % link for link in links)
        fields = source, target, b"%b %b" % (scores, FLAG), alignment, b"0 0 0"
        return b" ||| ".join(fields) + b" ||| |||\n"


def diagonal(source: int, target: int) -> list[tuple[int, int]]:
    """Return links along the diagonal, one at least for each of so many words on either side."""
    steps = max(source, target)
    return [(k * source // steps, k * target // steps) for k in range(steps)]
