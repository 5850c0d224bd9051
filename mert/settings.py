"""Settings of decoding and tuning: each default is written only here. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from moses_feature.decoder.limits import SearchLimits
from moses_feature.metrics import METRICS
from moses_feature.runtime.errors import UsageError

DECODERS = ("embedded", "moses")
OPTIMIZERS = ("mert", "mira")
ORDERED_BY = "mira"
"""The optimiser of the order of lists that stay what they are: `mert` learns them by heart."""


@dataclass(frozen=True)
class MosesSettings:
    """How to run Moses.

    Attributes:
        binary: the `moses` binary; None for `MOSES_HOME` or the PATH.
        threads: threads of the decoder.
        options: additional arguments, such as `-search-algorithm 1 -cube-pruning-pop-limit 1000`.
        seconds: time limit of a run; None for none.
        filter: whether to filter the tables to the text first.
    """

    binary: str | None = None
    threads: int = 1
    options: tuple[str, ...] = ()
    seconds: float | None = None
    filter: bool = False


@dataclass(frozen=True)
class DecoderSettings:
    """A decoder and its settings; defaults are those of the settings' own classes.

    Attributes:
        decoder: `embedded` or `moses`.
        limits: the limits of the embedded search.
        jobs: processes of the embedded decoder, or workers on a cluster; None for as many as there
            are cores, on this machine fewer for short texts.
        ray: the address of a Ray cluster that decodes; None for this machine only.
        moses: how to run Moses.
        rescoring: features that the decoder does not have, with their models: NAME and path.
        segmentation: whether n-best lists contain the phrases.
        cache: the embedded decoder's directory for what it has read; see `System`.
    """

    decoder: str = "embedded"
    limits: SearchLimits = field(default_factory=SearchLimits)
    jobs: int | None = None
    ray: str | None = None
    moses: MosesSettings = field(default_factory=MosesSettings)
    rescoring: tuple[tuple[str, str], ...] = ()
    cache: str | None = None
    segmentation: bool = False

    def __post_init__(self) -> None:
        if self.decoder not in DECODERS:
            valid = ", ".join(DECODERS)
            raise UsageError(f"unknown decoder {self.decoder!r}: expected one of {valid}")


@dataclass(frozen=True)
class TuningSettings:
    """How to tune; each default is written only here.

    Attributes:
        algorithm: one of `OPTIMIZERS`.
        metric: the metric to optimise; one of `moses_feature.metrics.METRICS`.
        list_size: distinct translations of each sentence in an iteration.
        max_iterations: decoding runs, at most.
        settled: tuning ends when no normalised weight changes by more than this.
        restarts: random start points of `mert`.
        random_directions: random directions of `mert`, tried when no single feature brings a gain.
        seed: the seed of everything random.
    """

    algorithm: str = "mert"
    metric: str = "bleu"
    list_size: int = 100
    max_iterations: int = 15
    settled: float = 0.002
    restarts: int = 20
    random_directions: int = 24
    seed: int = 1

    def __post_init__(self) -> None:
        if self.algorithm not in OPTIMIZERS:
            valid = ", ".join(OPTIMIZERS)
            raise UsageError(f"unknown algorithm {self.algorithm!r}: expected one of {valid}")
        if self.metric not in METRICS:
            valid = ", ".join(METRICS)
            raise UsageError(f"unknown metric {self.metric!r}: expected one of {valid}")
        if self.list_size < 2 or self.max_iterations < 1:
            raise UsageError("n-best and iterations: expected 2 and 1, or more")
