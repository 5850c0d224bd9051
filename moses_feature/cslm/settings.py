"""Settings of a language model: layer sizes, training, data; free of torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moses_feature.runtime.errors import UsageError
from moses_feature.training.settings import RunSettings

LM_ARCHITECTURE = "feed-forward-lm"
"""The name of the architecture in a model's config."""
LARGEST_SIZE = 1 << 15
LARGEST_ORDER = 32


@dataclass(frozen=True)
class LmSizes:
    """Order and layer sizes (Cho et al. 2014, section 4.1.2).

    Attributes:
        order: words of an n-gram, including the predicted one.
        projection: the size of the projection of a context word.
        first, second: units of the two rectified layers.
    """

    order: int
    projection: int
    first: int
    second: int

    def __post_init__(self) -> None:
        for name, size in vars(self).items():
            least, most = (2, LARGEST_ORDER) if name == "order" else (1, LARGEST_SIZE)
            if type(size) is not int or not least <= size <= most:
                raise ValueError(f"{name}: expected {least} to {most}, found {size!r}")

    @property
    def positions(self) -> int:
        """The number of input words of the network."""
        return self.order - 1

    def shapes(self, words: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights by their names in a model directory.

        The last row of the projection is that of a missing context word; see `NeuralLM`.
        """
        return {
            "projection.weight": (words + 1, self.projection),
            "first.weight": (self.first, self.positions * self.projection),
            "first.bias": (self.first,),
            "second.weight": (self.second, self.first),
            "second.bias": (self.second,),
            "output.weight": (words, self.second),
            "output.bias": (words,),
        }


LM_PRESETS = {
    "paper": LmSizes(order=7, projection=512, first=1536, second=1024),
    "small": LmSizes(order=7, projection=128, first=256, second=128),
    "characters": LmSizes(order=10, projection=32, first=256, second=128),
}


@dataclass(frozen=True, kw_only=True)
class LmSettings(RunSettings):
    """How to train a language model (Cho et al. 2014, section 4.1.2).

    Attributes:
        sizes: order and layer sizes.
        fewest_held_out: the least number of held-out sentences, up to a tenth of all.
        self_normalisation: factor of (log Z)^2 in the loss; 0 for none (Devlin et al. 2014).
    """

    sizes: LmSizes = LM_PRESETS["small"]
    batch_size: int = 128
    patience: int = 10
    held_out: float = 0.001
    fewest_held_out: int = 100
    self_normalisation: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.self_normalisation < math.inf:
            raise UsageError(
                f"self-normalisation: expected 0 or more, found {self.self_normalisation}"
            )


@dataclass(frozen=True)
class LmData:
    """The data to train a language model on.

    Attributes:
        text: a tokenised file with a sentence on each line.
        shortlist: the number of known words; all others are UNK.
        min_count: the least count of a word in the shortlist, so that UNK occurs, too.
    """

    text: str
    shortlist: int = 15_000
    min_count: int = 2
