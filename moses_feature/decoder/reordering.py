"""Lexicalised reordering models (`moses/FF/LexicalReordering/LRModel.cpp`).

A model scores the orientation of a phrase to the one before (backward), the orientation of the next
phrase to it (forward), or both. Its type is given by a name such as
`wbe-msd-bidirectional-fe-allff`. Moses decodes word-based (`wbe`) models as phrase-based ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from moses_feature.decoder.records import DISCONTINUOUS_LEFT, DISCONTINUOUS_RIGHT, MONOTONE, SWAP
from moses_feature.runtime.errors import UsageError

# The score of each orientation in a model's line; the keys are those of
# `moses_feature.decoder.records`.
ORIENTATIONS = {
    "msd": {MONOTONE: 0, SWAP: 1, DISCONTINUOUS_LEFT: 2, DISCONTINUOUS_RIGHT: 2},
    "mslr": {MONOTONE: 0, SWAP: 1, DISCONTINUOUS_LEFT: 2, DISCONTINUOUS_RIGHT: 3},
    "monotonicity": {MONOTONE: 0, SWAP: 1, DISCONTINUOUS_LEFT: 1, DISCONTINUOUS_RIGHT: 1},
    "leftright": {MONOTONE: 0, SWAP: 1, DISCONTINUOUS_LEFT: 1, DISCONTINUOUS_RIGHT: 0},
}
DIRECTIONS = {
    "backward": ("backward",),
    "unidirectional": ("backward",),
    "forward": ("forward",),
    "bidirectional": ("backward", "forward"),
}
CONDITIONS = ("f", "fe")
PHRASE_BASED = ("phrase", "wbe")
COLLAPSED = {"allff": False, "collapseff": True}


@dataclass(frozen=True)
class ReorderingType:
    """A model's type, parsed from its name.

    Attributes:
        orientations: the score of each orientation; see `ORIENTATIONS`.
        directions: `backward`, `forward` or both, in the order of the scores.
        on_target: whether the scores depend on the target phrase too.
        collapsed: whether a direction has one feature for all orientations.
    """

    orientations: dict[int, int]
    directions: tuple[str, ...]
    on_target: bool
    collapsed: bool

    @classmethod
    def parse(cls, name: str) -> ReorderingType:
        """Parse a name as Moses does, except that hierarchical models are refused.

        Raises:
            UsageError: a part is unknown or cannot be decoded, or no orientations are named.
        """
        kind, direction, condition, collapsed = None, "backward", "fe", False
        for part in name.split("-"):
            if part in ORIENTATIONS:
                kind = part
            elif part in DIRECTIONS:
                direction = part
            elif part in CONDITIONS:
                condition = part
            elif part in COLLAPSED:
                collapsed = COLLAPSED[part]
            elif part not in PHRASE_BASED:
                valid = [*PHRASE_BASED, *ORIENTATIONS, *DIRECTIONS, *CONDITIONS, *COLLAPSED]
                raise UsageError(
                    f"reordering type {name}: cannot decode {part!r}, only {', '.join(valid)}"
                )
        if kind is None:
            kinds = ", ".join(ORIENTATIONS)
            raise UsageError(f"reordering type {name}: expected one of {kinds} in it")
        return cls(ORIENTATIONS[kind], DIRECTIONS[direction], condition == "fe", collapsed)

    @property
    def scores(self) -> int:
        """The number of scores in a line of the table."""
        return len(self.directions) * self._per_direction

    @property
    def features(self) -> int:
        """The number of features."""
        return len(self.directions) * (1 if self.collapsed else self._per_direction)

    @property
    def _per_direction(self) -> int:
        return max(self.orientations.values()) + 1

    def score_column(self, direction: str, orientation: int) -> int:
        """Return which score of a line an orientation has, in a direction of the model.

        In a collapsed model Moses reads the forward scores from the second score on, not from
        behind the backward ones (`LRModel::CreateLRState`); so does this method.
        """
        stride = 1 if self.collapsed else self._per_direction
        return self.directions.index(direction) * stride + self.orientations[orientation]

    def feature_column(self, direction: str, orientation: int) -> int:
        """Return which of the model's features the score of an orientation belongs to."""
        if self.collapsed:
            return self.directions.index(direction)
        return self.score_column(direction, orientation)
