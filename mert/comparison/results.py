"""The results of a comparison: runs, systems, notes on weights, and times."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from moses_feature import __version__
from moses_feature.metrics.bleu import BLEU
from moses_feature.metrics.metric import Metric
from moses_feature.runtime.files import Json, write_json
from moses_feature.runtime.json_files import read_json, record


@dataclass
class Seconds:
    """The time of a system besides its tuning runs, in seconds.

    Attributes:
        loading: reading its models for development and test set, in the latest process.
        testing: translating the test set with the weights of all runs.
    """

    loading: float = 0.0
    testing: float = 0.0


class Times:
    """The seconds of a system, in a file to which a resumed run adds.

    Raises:
        FormatError: the file holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        what = "the times of a system"
        self.seconds = (
            record(Seconds, read_json(path, what), path, what) if path.exists() else Seconds()
        )
        self.seconds.loading = 0.0

    @contextmanager
    def spent_on(self, what: str) -> Iterator[None]:
        """Add the duration of the block to a field of `Seconds`."""
        began = time.monotonic()
        yield
        spent = getattr(self.seconds, what) + time.monotonic() - began
        setattr(self.seconds, what, round(spent, 3))
        write_json(self._path, asdict(self.seconds))


class TimeLeft:
    """Estimates the remaining time of a comparison from the tuning runs of this process.

    Args:
        runs: tuning runs of all systems.
    """

    def __init__(self, runs: int) -> None:
        self._to_do = runs
        self._tuned: list[float] = []

    def add(self, seconds: float, was_done: bool) -> None:
        """Count a run that has ended, in this process or (`was_done`) an earlier one."""
        self._to_do -= 1
        if not was_done:
            self._tuned.append(seconds)

    def __str__(self) -> str:
        """Return the remaining time in words, empty before the first run has ended."""
        if not self._tuned:
            return ""
        seconds = self._to_do * sum(self._tuned) / len(self._tuned)
        return f"; about {seconds / 60:.0f} min left for all" if seconds >= 60 else ""


NEAR_ZERO = 0.005
"""A feature with a smaller share of the effects of all has almost none."""


@dataclass(frozen=True)
class TuningRun:
    """One tuning run of a system and its results; scores are the metric as shown to users.

    Attributes:
        seed: of the tuning.
        dev_score, test_score: of the first translations; that of dev is nan for a finished output.
        iterations: of the tuning.
        stopped: why it ended.
        has_converged: it ended by itself, and not for lack of iterations.
        kept_start: the weights that it began with were the best.
        weights: of the tuneable features, their absolute values summing to 1.
        constants: features with the same value in all translations of every sentence.
        effects: absolute weights, times the spread of the feature's values if it is known; their
            sum is 1.
        test_statistics: (sentences, width) of the metric.
        test_lists: the file of the n-best lists of the test set.
        curve: the metric of the first translations of dev, for each iteration.
        seconds: the time of decoding and optimising, over all iterations.
        kept_baseline: the baseline's weights were the best, with 0 for the features that it lacks.
        kept_order: the order of the search was the best: what rescores its lists did not help.
    """

    seed: int
    dev_score: float
    test_score: float
    iterations: int
    stopped: str
    has_converged: bool
    kept_start: bool
    weights: dict[str, float]
    constants: tuple[str, ...]
    test_statistics: np.ndarray
    test_lists: Path
    curve: tuple[float, ...] = ()
    seconds: tuple[float, float] = (0.0, 0.0)
    kept_baseline: bool = False
    kept_order: bool = False
    effects: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SystemResult:
    """All runs of a system, and its difference from the baseline on the test set.

    Attributes:
        name: the name of the system.
        runs: one for each seed.
        seconds: that it took besides its tuning runs.
        difference: of the mean test score; None for the baseline.
        p: the p-value of that difference; None for the baseline.
        covers_tuning: whether it covers the luck of tuning, and not the choice of sentences alone.
        notes: what is odd about the weights of features that the baseline has not.
        against: the systems between the baseline and this one, each with the difference from it,
            the p-value, and whether that covers the luck of tuning.
    """

    name: str
    runs: tuple[TuningRun, ...]
    seconds: Seconds
    difference: float | None
    p: float | None
    covers_tuning: bool
    notes: tuple[str, ...]
    against: tuple[tuple[str, float, float, bool], ...] = ()

    def scores(self, part: str) -> np.ndarray:
        """Return the metric of all runs on `dev` or `test`."""
        return np.array([getattr(run, f"{part}_score") for run in self.runs])


def different(runs: Sequence[TuningRun]) -> np.ndarray:
    """Return the statistics (different runs, sentences, width) of runs; equal ones count once.

    Copies of a run are no evidence: p-values would fall with every copy.
    """
    found = {run.test_statistics.tobytes(): run.test_statistics for run in runs}
    return np.stack(list(found.values()))


@dataclass(frozen=True)
class Comparison:
    """The results of all systems, the baseline first, the metric and its signature."""

    systems: tuple[SystemResult, ...]
    signature: str
    metric: Metric = BLEU


def notes_on_weights(runs: tuple[TuningRun, ...], known: set[str]) -> list[str]:
    """Describe suspicious weights of features that the baseline does not have."""
    notes = []
    for feature in runs[0].weights:
        if feature in known:
            continue
        weights = np.array([run.weights[feature] for run in runs])
        name = feature.removesuffix("_0")
        name = feature if f"{name}_1" in runs[0].weights else name
        text = f"{name}: weights {', '.join(f'{weight:.4f}' for weight in weights)}"
        if any(feature in run.constants for run in runs):
            notes.append(f"{name}: the same for all translations, its weight does nothing")
        elif all(run.effects.get(feature, 1.0) < NEAR_ZERO for run in runs):
            notes.append(f"{text}, near zero for its values: it hardly takes part")
        elif weights.min() < 0 < weights.max():
            notes.append(f"{text}, of both signs: the tuning does not know what to do with it")
        else:
            notes.append(text)
    return notes


def as_json(comparison: Comparison, command: str) -> Json:
    """Return the results as JSON, for a file."""
    systems = []
    for system in comparison.systems:
        content = asdict(system)
        for run in content["runs"]:
            del run["test_statistics"], run["test_lists"]
            if math.isnan(run["dev_score"]):
                run["dev_score"] = None
        for part in ("dev", "test"):
            scores = system.scores(part)
            known = not np.isnan(scores).any()
            content[f"{part}_mean"] = float(scores.mean()) if known else None
            content[f"{part}_std"] = (
                float(scores.std(ddof=1)) if known and len(scores) > 1 else None
            )
        systems.append(content)
    return {
        "metric": comparison.metric.name,
        "signature": comparison.signature,
        "systems": systems,
        "command": command,
        "version": __version__,
    }
