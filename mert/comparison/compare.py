"""Compare systems as in the paper's Table 1: tune each several times, translate, score, test.

The work directory has a folder for each system, and in it one for each seed (see `tune`) with the
translations of the test set; `comparison.json` holds all results. Like a tuning run, a comparison
that was killed is resumed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from mert.comparison import candidate as finished
from mert.comparison.candidate import (
    IDENTITY,
    PAGE,
    RESULTS,
    Candidate,
    check_names,
)
from mert.comparison.page import write_page
from mert.comparison.results import (
    Comparison,
    Seconds,
    SystemResult,
    TimeLeft,
    TuningRun,
    as_json,
    different,
    notes_on_weights,
)
from mert.comparison.significance import compared
from mert.comparison.system_runs import ComparisonTask, Report, SystemRuns
from mert.settings import DecoderSettings, TuningSettings
from mert.tuning.corpus import Corpus, check_chain
from mert.tuning.plan import TuningPlan, seconds_of
from mert.tuning.state import decoder_identity
from moses_feature.doctor.model_files import check_kept_phrases
from moses_feature.metrics.metric import Metric
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import locked_directory, write_json
from moses_feature.runtime.json_files import difference, read_json

logger = logging.getLogger(__name__)


def compare(
    candidates: Sequence[Candidate],
    dev: Corpus | None,
    test: Corpus,
    directory: Path,
    decoder: DecoderSettings,
    tuning: TuningSettings,
    runs: int = 3,
    *,
    outputs: Mapping[str, Sequence[str]] = MappingProxyType({}),
    command: str = "",
    force: bool = False,
    report: Report = lambda *_: None,
) -> Comparison:
    """Tune every system several times, compare them with the first one, and write the results.

    Args:
        candidates: the systems; the first one is the baseline.
        dev: the development set, for tuning; None if there are no systems to tune.
        test: the test set.
        directory: created if missing.
        decoder: the settings of the decoder, for all systems.
        tuning: the settings, with the seed of the first run; later runs have the next seeds.
        runs: tuning runs of each system.
        outputs: test sets as translated by other systems: for each name the files of its runs,
            with a translation on each line; without systems to tune, the first is the baseline.
        command: the command line, for the record.
        force: tune even if BLEU is almost 0 at the start.
        report: called with the current task and the number of sentences decoded.

    Raises:
        UsageError: names that are not unique, no run, or a directory of another comparison.
        DataError: a finished output does not have a line for each sentence.
        MosesFeatureError: a decoder fails, or a system cannot be tuned.
    """
    names = [candidate.name for candidate in candidates]
    check_names([*names, *outputs])
    if runs < 1:
        raise UsageError(f"tuning runs: expected 1 or more, found {runs}")
    if candidates and dev is None:
        raise UsageError("systems are tuned: expected a development set, found none")
    seeds = [replace(tuning, seed=tuning.seed + run) for run in range(runs)]
    texts = {
        name: [finished.read_output(path, test) for path in paths]
        for name, paths in outputs.items()
    }
    found: list[Found] = []
    with locked_directory(directory, "comparing"):
        new = [of for of in candidates if not any((directory / of.name).glob("*"))]
        if dev is not None and new:
            plan_comparison(new, dev, test, decoder, tuning, runs).log()
        for candidate in candidates[1:]:
            for finding in check_kept_phrases(candidate.ini, test.paths[0], test.digests[0]):
                logger.warning("%s", finding)
        _check_directory(directory, dev, test, decoder)
        left = TimeLeft(len(candidates) * runs)
        task = ComparisonTask(
            names, dev, test, directory, decoder, seeds, command, force, left, report
        )
        for name, of_files in texts.items():
            of_output = finished.runs_of(of_files, task.test_scorer, directory / name)
            found.append((name, of_output, Seconds()))
        for place, candidate in enumerate(candidates):
            system = SystemRuns(candidate, task)
            found.insert(place, (candidate.name, system.results(), system.times.seconds))
    report("testing significance", 0)
    baseline = found[0][1]
    systems = (
        SystemResult(*found[0], None, None, False, ()),
        *(
            _compared(*of_system, baseline, found[1:number], task.metric)
            for number, of_system in enumerate(found[1:], 1)
        ),
    )
    comparison = Comparison(systems, task.test_scorer.signature(), task.metric)
    write_json(directory / RESULTS, as_json(comparison, command))
    settings = {"command": command, **asdict(tuning), **decoder_identity(decoder)}
    write_page(comparison, test, directory / PAGE, settings)
    return comparison


Found = tuple[str, tuple[TuningRun, ...], Seconds]


def _compared(
    name: str,
    runs: tuple[TuningRun, ...],
    seconds: Seconds,
    baseline: tuple[TuningRun, ...],
    others: Sequence[Found],
    metric: Metric,
) -> SystemResult:
    known = set(baseline[0].weights)
    found = compared(different(runs), different(baseline), metric)
    return SystemResult(
        name,
        runs,
        seconds,
        _difference(runs, baseline),
        found.p,
        found.covers_tuning,
        tuple(notes_on_weights(runs, known)) if known else (),
        tuple(_pair(runs, *of_other[:2], metric) for of_other in others),
    )


def _pair(
    runs: Sequence[TuningRun], name: str, others: Sequence[TuningRun], metric: Metric
) -> tuple[str, float, float, bool]:
    """Compare a system with one that is not the baseline; see `SystemResult.against`."""
    found = compared(different(runs), different(others), metric)
    return name, _difference(runs, others), found.p, found.covers_tuning


def _difference(runs: Sequence[TuningRun], others: Sequence[TuningRun]) -> float:
    """Return the difference of the mean scores on the test set."""
    means = (np.mean([run.test_score for run in of]) for of in (runs, others))
    return float(next(means) - next(means))


def plan_comparison(
    candidates: Sequence[Candidate],
    dev: Corpus,
    test: Corpus,
    decoder: DecoderSettings,
    tuning: TuningSettings,
    runs: int,
) -> TuningPlan:
    """Check within seconds that systems can be decoded; return how long their runs may take."""
    seconds, tests = [], []
    for candidate in candidates:
        of_candidate = candidate.decoder(decoder)
        a_sentence = check_chain(candidate.ini, dev, of_candidate)
        if candidate == candidates[0]:
            check_chain(candidate.ini, test, of_candidate)
        seconds.append(seconds_of(dev, a_sentence, of_candidate))
        tests.append(seconds_of(test, a_sentence, of_candidate))
    return TuningPlan(seconds, tuning.max_iterations, runs, tests)


def _check_directory(
    directory: Path, dev: Corpus | None, test: Corpus, decoder: DecoderSettings
) -> None:
    """Refuse the directory of another comparison; systems and seeds may be added later."""
    identity = {
        "dev": {} if dev is None else dev.identity(),
        "test": test.identity(),
        "decoder": decoder_identity(decoder),
    }
    path = directory / IDENTITY
    if path.exists():
        if other := difference(identity, read_json(path, "the identity of a comparison")):
            raise UsageError(
                f"{directory} holds a comparison with other {other.key}: expected "
                f"{other.expected}, found {other.found}; use another --work-dir"
            )
    elif any(not file.name.startswith(".") for file in directory.iterdir()):
        raise UsageError(f"{directory}: expected a new or empty directory")
    else:
        write_json(path, identity)
