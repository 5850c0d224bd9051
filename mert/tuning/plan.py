"""How long tuning may take: an estimate by the speed of the first sentences."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from mert.settings import DecoderSettings, TuningSettings
from mert.tuning.corpus import Corpus
from moses_feature.decoder.decoder import usual_jobs
from moses_feature.runtime.processes import duration

logger = logging.getLogger(__name__)

WORTH_PRINTING = 60.0
"""Seconds of a run whose plan is printed without being asked for."""


@dataclass(frozen=True)
class TuningPlan:
    """How long the decoding of some tuning runs may take.

    Attributes:
        seconds: of an iteration of each system.
        iterations: of a run, at most.
        runs: of each system.
        tests: seconds of translating the test set, for a run of each system.
    """

    seconds: Sequence[float]
    iterations: int
    runs: int = 1
    tests: Sequence[float] = ()

    @property
    def total(self) -> float:
        """All seconds, if each run has all of its iterations."""
        return self.runs * (self.iterations * sum(self.seconds) + sum(self.tests))

    def __str__(self) -> str:
        parts = [f"an iteration decodes for {' or '.join(map(duration, self.seconds))}"]
        if self.tests:
            parts.append(f"a test set for {' or '.join(map(duration, self.tests))}")
        runs = self.runs * len(self.seconds)
        return (
            f"plan (an estimate): {', '.join(parts)}; {runs} run{'s' if runs > 1 else ''} of "
            f"{self.iterations} iterations: {duration(self.total)} at most, most often less"
        )

    def log(self) -> None:
        """Log the plan of a run that is long."""
        if self.total >= WORTH_PRINTING:
            logger.info("%s", self)


def seconds_of(corpus: Corpus, a_sentence: float, decoder: DecoderSettings) -> float:
    """Return how long a text takes, given the seconds of a sentence in one process."""
    count = len(corpus)
    jobs = decoder.moses.threads if decoder.decoder == "moses" else decoder.jobs
    return a_sentence * count / max(1, min(jobs or usual_jobs(count), count))


def plan_tuning(
    corpus: Corpus, a_sentence: float, decoder: DecoderSettings, settings: TuningSettings
) -> TuningPlan:
    """Return the plan of one tuning run; see `seconds_of`."""
    return TuningPlan([seconds_of(corpus, a_sentence, decoder)], settings.max_iterations)
