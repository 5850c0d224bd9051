"""How to train a language model, and on what; free of torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moses_feature.errors import UsageError
from moses_feature.lm.sizes import LM_PRESETS, LmSizes
from moses_feature.training.settings import RunSettings


@dataclass(frozen=True, kw_only=True)
class LmSettings(RunSettings):
    """How to train a language model (Cho et al. 2014, section 4.1.2).

    Attributes:
        sizes: order and layer sizes.
        held_out: share of the sentences that measure the held-out loss.
        fewest_held_out: sentences that are held out at least, a tenth of all at most.
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
        if not 0 < self.held_out < 1:
            raise UsageError(f"held-out share: expected above 0 and below 1, found {self.held_out}")
        if not 0 <= self.self_normalisation < math.inf:
            raise UsageError(
                f"self-normalisation: expected 0 or more, found {self.self_normalisation}"
            )


@dataclass(frozen=True)
class LmData:
    """What to train a language model on.

    Attributes:
        text: a file with a sentence on each line, tokenised.
        shortlist: words that the network knows; all others are UNK.
        min_count: how often a word of the shortlist occurs at least, so that UNK occurs, too.
    """

    text: str
    shortlist: int = 15_000
    min_count: int = 2
