"""How to refine a network, and on what; free of torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_feature.moses.features import FeatureSet
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import UsageError
from moses_feature.training.settings import RunSettings

LEARNING_RATE = 1e-4
"""Of Adam; a tenth of that for a network that starts from nothing."""


@dataclass(frozen=True, kw_only=True)
class RefineSettings(RunSettings):
    """How to refine a network; an example is a sentence with its list.

    Attributes:
        perplexity: of the translations of a list under the log-linear model, on average, at the
            start: it says how much more the better ones weigh.
        weight: of the network's column while it learns; None for that of the system.
        held_out: share of the sentences that measure the held-out loss.
    """

    batch_size: int = 16
    learning_rate: float | None = LEARNING_RATE
    perplexity: float = 10.0
    weight: float | None = None
    held_out: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 < self.perplexity < math.inf:
            raise UsageError(f"perplexity: expected more than 1, found {self.perplexity}")
        if self.weight is not None and not 0 < abs(self.weight) < math.inf:
            raise UsageError(f"weight: expected another number than 0, found {self.weight}")
        if not 0 < self.held_out < 1:
            raise UsageError(f"held-out share: expected above 0 and below 1, found {self.held_out}")


@dataclass(frozen=True)
class RefineData:
    """What to refine a network on.

    Attributes:
        model: the directory of the network.
        source: a text that was decoded, tokenised.
        references: its translations.
        lists: n-best lists with segmentation, of a system that has the network's column.
        features: of that system, with their weights.
        column: the network's log p among the tuneable features.
        digest: of the network that made the column.
        words: how the tokens of the table become words.
    """

    model: Path
    source: str
    references: Sequence[str]
    lists: str
    features: FeatureSet
    column: int
    digest: str
    words: TableWords
