"""Lexicalised reordering models (`moses/FF/LexicalReordering/LRModel.cpp`).

A model scores the orientation of a phrase to the one before (backward), the orientation of the next
phrase to it (forward), or both. Its type is given by a name such as
`wbe-msd-bidirectional-fe-allff`. Moses decodes word-based (`wbe`) models as phrase-based ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from moses_feature.runtime.errors import UsageError

MONOTONE, SWAP, DISCONTINUOUS_LEFT, DISCONTINUOUS_RIGHT = range(4)
"""Orientations as `mslr` models distinguish them; other models merge some of them."""

# The score of each orientation in a model's line.
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
KINDS = ("wbe", "phrase")
FEATURES = ("allff", "collapseff")


@dataclass(frozen=True)
class ReorderingType:
    """A model's type, parsed from its name.

    Attributes:
        kind: how orientations were counted; see `KINDS`.
        classes: the orientations that it distinguishes; see `ORIENTATIONS`.
        direction: see `DIRECTIONS`.
        condition: `fe` if the scores depend on the target phrase too, else `f`.
        collapsed: whether a direction has one feature for all orientations.
    """

    kind: str
    classes: str
    direction: str
    condition: str
    collapsed: bool

    @classmethod
    def parse(cls, name: str) -> ReorderingType:
        """Parse a name as Moses does, except that hierarchical models are refused.

        Raises:
            UsageError: a part is unknown or cannot be decoded, or no orientations are named.
        """
        choices = {
            "kind": KINDS,
            "classes": ORIENTATIONS,
            "direction": DIRECTIONS,
            "condition": CONDITIONS,
            "features": FEATURES,
        }
        found = {"kind": "wbe", "direction": "backward", "condition": "fe", "features": "allff"}
        given: set[str] = set()
        for part in name.split("-"):
            what = next((what for what, of in choices.items() if part in of), None)
            if what is None:
                valid = ", ".join(chain.from_iterable(choices.values()))
                raise UsageError(f"reordering type {name}: cannot decode {part!r}, only {valid}")
            if what in given:
                raise UsageError(f"reordering type {name}: expected one {what}, found {part}, too")
            given.add(what)
            found[what] = part
        if "classes" not in found:
            classes = ", ".join(ORIENTATIONS)
            raise UsageError(f"reordering type {name}: expected one of {classes} in it")
        return cls(collapsed=found.pop("features") == "collapseff", **found)

    @property
    def table_name(self) -> str:
        """Its name without the features, as Moses' training has it in names of tables."""
        return f"{self.kind}-{self.classes}-{self.direction}-{self.condition}"

    @property
    def name(self) -> str:
        """The whole name."""
        return f"{self.table_name}-{FEATURES[self.collapsed]}"

    @property
    def orientations(self) -> dict[int, int]:
        """The score of each orientation."""
        return ORIENTATIONS[self.classes]

    @property
    def directions(self) -> tuple[str, ...]:
        """`backward`, `forward` or both, in the order of the scores."""
        return DIRECTIONS[self.direction]

    @property
    def on_target(self) -> bool:
        """Whether the scores depend on the target phrase too."""
        return self.condition == "fe"

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
