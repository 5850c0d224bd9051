"""Settings of a joint language model: layer sizes and data; free of torch."""

from __future__ import annotations

from dataclasses import dataclass

from moses_feature.cslm.settings import LmSizes

JOINT_ARCHITECTURE = "feed-forward-joint-lm"
"""The name of the architecture in a model's config."""


@dataclass(frozen=True)
class JointSizes(LmSizes):
    """Window, order and layer sizes (Devlin et al. 2014, section 2).

    Attributes:
        source_window: source words on each side of the one that a target word is affiliated to.
        order: target words of an n-gram, including the predicted one.
        projection: the size of the projection of an input word.
        first, second: units of the two rectified layers.
    """

    source_window: int

    @property
    def source_words(self) -> int:
        """The number of source words in the input of the network."""
        return 2 * self.source_window + 1

    @property
    def positions(self) -> int:
        """The number of input words: source words, then target words."""
        return self.source_words + self.order - 1

    def joint_shapes(self, source: int, target: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights by their names in a model directory.

        Args:
            source: the number of words of the source side.
            target: the number of words of the target side. The last row of a projection is that of
                a missing context word.
        """
        return self.shapes(target) | {"source_projection.weight": (source + 1, self.projection)}


JOINT_PRESETS = {
    "paper": JointSizes(source_window=5, order=4, projection=192, first=512, second=512),
    "small": JointSizes(source_window=5, order=4, projection=128, first=256, second=128),
}
"""`paper` has the sizes of Devlin et al. 2014."""


@dataclass(frozen=True)
class JointData:
    """The data to train a joint language model on.

    Attributes:
        source, target: tokenised files with a sentence on each line; line n of one translates
            line n of the other.
        alignment: a file with the links of a pair on each line, source and target place, as
            Moses' training leaves it (`aligned.grow-diag-final-and`).
        shortlist: the number of known words of each side; all others are UNK.
        min_count: the least count of a word in a shortlist, so that UNK occurs, too.
    """

    source: str
    target: str
    alignment: str
    shortlist: int = 15_000
    min_count: int = 2
