"""Settings of networks for pairs: layer sizes, training, data; free of torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import PairSizes
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.runtime.errors import UsageError
from moses_feature.training.settings import RunSettings

Unit = Literal["gru", "tanh", "lstm"]
"""The hidden units of both recurrences.

gru: the paper's gated units; tanh: units without gates; lstm: long short-term memory.
"""
PRODUCTS = {"gru": 3, "tanh": 1, "lstm": 4}
"""The number of products, with a word and with the state before it, that a unit needs."""


@dataclass(frozen=True)
class Sizes(PairSizes):
    """Layer sizes: hidden units, embedding, maxout units (S outputs from 2 S inputs), output rank.

    The rank is that of the product G_l G_r, which replaces one output matrix. Encoder and decoder
    have the same kind of hidden units.
    """

    hidden: int
    embedding: int
    maxout: int
    rank: int
    unit: Unit = "gru"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit not in PRODUCTS:
            raise ValueError(f"unit: expected {' or '.join(PRODUCTS)}, found {self.unit!r}")

    @property
    def products(self) -> int:
        """The number of products of size H that a state needs."""
        return PRODUCTS[self.unit]

    @property
    def state(self) -> int:
        """The width of a state: H, and for LSTM as many memory cells."""
        return 2 * self.hidden if self.unit == "lstm" else self.hidden


PRESETS = {
    "paper": Sizes(hidden=1000, embedding=100, maxout=500, rank=100),  # section 4.1.1
    "supplement": Sizes(hidden=1000, embedding=500, maxout=500, rank=500),
    "small": Sizes(hidden=256, embedding=100, maxout=250, rank=100),
    "characters": Sizes(hidden=256, embedding=32, maxout=128, rank=64),
}


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(RunSettings):
    """How to train a network for pairs of phrases.

    Attributes:
        sizes: layer sizes, whose class determines the architecture.
        pool: batches that are sorted by length together.
        held_out_limit: the most source phrases that are held out.
        self_normalisation: factor of (log Z)^2 in the loss; 0 for none (Devlin et al. 2014).
        sample: mean number of target words in the sample that estimates Z; None, or as many as
            there are words, for exact Z.
    """

    rates: ClassVar[Mapping[str, float]] = {"adam": 2e-3, "adadelta": 1.0}

    batch_size: int = 128
    sizes: PairSizes = PRESETS["small"]
    pool: int = 100
    held_out_limit: int = 10_000
    self_normalisation: float = 0.0
    sample: int | None = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.self_normalisation < math.inf:
            raise UsageError(
                f"self-normalisation: expected 0 or more, found {self.self_normalisation}"
            )
        if self.sample is not None and self.sample < 1:
            raise UsageError(f"sample: expected a word at least, found {self.sample}")


@dataclass(frozen=True, kw_only=True)
class RefineSettings(RunSettings):
    """How to refine a network; an example is a sentence with its list.

    Attributes:
        perplexity: mean perplexity of a list's translations under the log-linear model at the
            start; the lower it is, the more the better ones count.
        weight: the weight of the network's column in training; None for that of the system.
    """

    batch_size: int = 16
    learning_rate: float | None = 1e-4  # a tenth of the rate for training from scratch
    perplexity: float = 10.0
    weight: float | None = None
    held_out: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 < self.perplexity < math.inf:
            raise UsageError(f"perplexity: expected more than 1, found {self.perplexity}")
        if self.weight is not None and not 0 < abs(self.weight) < math.inf:
            raise UsageError(f"weight: expected another number than 0, found {self.weight}")


@dataclass(frozen=True)
class TrainingData:
    """The data to train on.

    Attributes:
        tables: phrase tables, or tab-separated files of phrase pairs.
        source_text, target_text: texts whose word frequencies determine the shortlists; None for
            the tables themselves, each pair weighted by its joint count.
        shortlist: the number of known words of each side; all others are UNK.
        words: how tokens become words.
        direction: the direction in which the pairs are read and written.
    """

    tables: Sequence[str]
    source_text: str | None = None
    target_text: str | None = None
    shortlist: int = 15_000
    words: WordOptions = field(default_factory=WordOptions)
    direction: Direction = FORWARD
