"""The layer sizes of a joint language model, and what to train it on; free of torch."""

from __future__ import annotations

from dataclasses import dataclass

from moses_feature.cslm.settings import LmSizes

JOINT_ARCHITECTURE = "feed-forward-joint-lm"
"""What the config of a model directory calls it."""


@dataclass(frozen=True)
class JointSizes(LmSizes):
    """Window, order and layer sizes (Devlin et al. 2014, section 2).

    Attributes:
        source_window: source words on each side of the one that a target word belongs to.
        order: target words of an n-gram, the predicted one counted.
        projection: of each word that the network sees.
        first, second: units of the two rectified layers.
    """

    source_window: int

    @property
    def source_words(self) -> int:
        """Source words that the network sees."""
        return 2 * self.source_window + 1

    @property
    def positions(self) -> int:
        """Words that the network sees: source words, then target words."""
        return self.source_words + self.order - 1

    def joint_shapes(self, source: int, target: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights by their names in a model directory.

        Args:
            source: words of the source side.
            target: of the target side. The last row of a projection is that of a word that is
                not known.
        """
        return self.shapes(target) | {"source_projection.weight": (source + 1, self.projection)}


JOINT_PRESETS = {
    "paper": JointSizes(source_window=5, order=4, projection=192, first=512, second=512),
    "small": JointSizes(source_window=5, order=4, projection=128, first=256, second=128),
}
"""`paper` is that of Devlin et al. 2014."""


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
