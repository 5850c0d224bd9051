"""The tuning runs of one system of a comparison, and its translations of the test set."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np

from mert.comparison.candidate import Candidate
from mert.comparison.results import TimeLeft, Times, TuningRun
from mert.comparison.significance import CorpusScorer
from mert.decoders.choice import make_decoder
from mert.decoders.decoder import Decoder
from mert.decoders.rescored import RescoredDecoder
from mert.optimisers.candidates import normalised
from mert.settings import DecoderSettings, TuningSettings
from mert.tuning.corpus import Corpus
from mert.tuning.state import (
    SEARCH,
    TEST_NBEST,
    TEST_OUT,
    TUNED_INI,
    TuningState,
    decoder_identity,
    identity_of,
    lists_name,
    read_run,
)
from mert.tuning.tune_rescored import tune_system
from moses_feature import __version__
from moses_feature.metrics import metric_of
from moses_feature.metrics.metric import Metric
from moses_feature.moses.features import FeatureSet, WeightsByName
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.nbest_lists import first_translations
from moses_feature.runtime.files import write_whole

logger = logging.getLogger(__name__)

TABLES = ".tables"
"""The folder of what the embedded decoder has read."""
AVERAGE_INI, TIMES = "average.ini", "times.json"
TEST_TRANSLATIONS = 100
"""Translations kept for each sentence of the test set, for the page."""

Report = Callable[[str, int], None]


@dataclass(frozen=True)
class ComparisonTask:
    """The common data of all systems of a comparison; see `compare`."""

    names: Sequence[str]
    dev: Corpus | None
    test: Corpus
    directory: Path
    decoder: DecoderSettings
    tuning: Sequence[TuningSettings]
    command: str
    force: bool
    left: TimeLeft
    report: Report

    @cached_property
    def tuned_on(self) -> Corpus:
        """The development set; only to be used with systems to tune."""
        assert self.dev is not None  # noqa: S101  # checked by `compare`
        return self.dev

    @property
    def metric(self) -> Metric:
        """The metric to optimise and compare."""
        return metric_of(self.tuning[0].metric)

    @cached_property
    def test_scorer(self) -> CorpusScorer:
        """Scores translations of the test set."""
        return CorpusScorer(self.test, self.metric)


class SystemRuns:
    """The tuning runs of a system, one for each seed, and their translations of the test set."""

    def __init__(self, candidate: Candidate, task: ComparisonTask) -> None:
        self._candidate = candidate
        self._task = task
        settings = replace(task.decoder, cache=str(task.directory / TABLES))
        self._settings = candidate.decoder(settings)
        self._home = task.directory / candidate.name
        self._home.mkdir(parents=True, exist_ok=True)
        self.times = Times(self._home / TIMES)

    def results(self) -> tuple[TuningRun, ...]:
        """Tune with every seed, translate the test set, and average the weights."""
        features, states = self._tuned()
        self._translate(features, states)
        self._write_average(features, states)
        return tuple(
            self._run(features, settings, state)
            for settings, state in zip(self._task.tuning, states, strict=True)
        )

    def _folder(self, settings: TuningSettings) -> Path:
        return self._home / f"seed-{settings.seed}"

    def _other_runs(self, settings: TuningSettings) -> Iterator[Path]:
        """Yield the possible directories of other runs with the same seed."""
        for name in self._task.names:
            if name != self._candidate.name:
                folder = self._task.directory / name / self._folder(settings).name
                yield folder
                yield folder / SEARCH

    def _before(self, settings: TuningSettings) -> WeightsByName | None:
        """Return the baseline's weights of the same seed, if this system only adds to it."""
        baseline = self._task.directory / self._task.names[0] / self._folder(settings).name
        if self._candidate.name == self._task.names[0]:
            return None
        before = MosesIni.read(baseline / TUNED_INI).weights_by_name()
        features = FeatureSet.of_ini(self._candidate.ini)
        adds = features.begun_by(before) is not None and features.has_more_than(before)
        return before if adds else None

    def _report(self, run: str, what: str, done: int) -> None:
        self._task.report(f"{self._candidate.name}, {run}: {what}", done)

    def _tuned(self) -> tuple[FeatureSet, list[TuningState]]:
        """Tune with every seed; return the features, and the state of each run."""
        ini, dev = self._candidate.ini, self._task.tuned_on
        identity = {**identity_of(ini, dev), "decoder": decoder_identity(self._settings)}
        first = self._task.tuning[0]
        with self._decoder(dev) as load:
            states = []
            for number, settings in enumerate(self._task.tuning, 1):
                run = f"run {number} of {len(self._task.tuning)}"
                name, left = self._candidate.name, self._task.left
                logger.info("%s, %s, seed %d%s", name, run, settings.seed, left)
                before = self._before(settings)
                was_done, began = (self._folder(settings) / TUNED_INI).exists(), time.monotonic()
                states.append(
                    tune_system(
                        ini,
                        dev,
                        load(),
                        self._folder(settings),
                        settings,
                        identity=identity,
                        command=self._task.command,
                        force=self._task.force,
                        first_lists=self._folder(first) / lists_name(1, first),
                        other_runs=self._other_runs(settings),
                        before=before,
                        renew=True,
                        report=partial(self._report, run),
                    )
                )
                left.add(time.monotonic() - began, was_done)
            return load().features, states

    @contextmanager
    def _decoder(
        self, corpus: Corpus, segmentation: bool = False
    ) -> Iterator[Callable[[], Decoder]]:
        """Yield what returns the decoder, which is made when first needed; close it at the end."""
        settings = replace(self._settings, segmentation=segmentation)
        with ExitStack() as stack:

            @cache
            def load() -> Decoder:
                with self.times.spent_on("loading"):
                    decoder = make_decoder(settings, self._candidate.ini, corpus.sentences)
                return stack.enter_context(closing(decoder))

            yield load

    def _translate(self, features: FeatureSet, states: Sequence[TuningState]) -> None:
        """Translate the test set with the weights of each run, unless that was done before."""
        test = self._task.test
        with self._decoder(test, segmentation=True) as load:
            for settings, state in zip(self._task.tuning, states, strict=True):
                folder = self._folder(settings)
                if not (folder / TEST_NBEST).exists():
                    loaded = load()
                    if isinstance(loaded, RescoredDecoder):
                        loaded.search_with(MosesIni.read(folder / SEARCH / TUNED_INI))
                    with self.times.spent_on("testing"):
                        loaded.write_nbest(
                            features.with_weights(state.best.weights),
                            TEST_TRANSLATIONS,
                            folder / TEST_NBEST,
                            partial(
                                self._report, f"seed {settings.seed}", "translating the test set"
                            ),
                        )
                _write_translations(folder / TEST_NBEST, len(test), folder / TEST_OUT)

    def _run(self, features: FeatureSet, settings: TuningSettings, state: TuningState) -> TuningRun:
        """Return the results of a run."""
        folder = self._folder(settings)
        done, has_converged, search = state.iterations, state.has_converged, state
        if self._candidate.rescoring:
            search = read_run(folder / SEARCH)
            done, has_converged = search.iterations + done, has_converged and search.has_converged
        test_score, statistics = self._task.test_scorer.score(folder / TEST_NBEST)
        weights = normalised(state.best.weights)
        spread = state.spread if len(state.spread) == len(weights) else np.ones(len(weights))
        effects = normalised(weights * spread)
        return TuningRun(
            seed=settings.seed,
            dev_score=self._task.metric.shown(state.best.quality),
            test_score=test_score,
            iterations=len(done),
            stopped=state.stopped,
            has_converged=has_converged,
            kept_start=search.kept == "own",
            kept_baseline=search.kept == "known",
            kept_order=bool(self._candidate.rescoring) and state.kept == "known",
            weights=dict(zip(features.names, weights, strict=True)),
            effects=dict(zip(features.names, np.abs(effects).tolist(), strict=True)),
            constants=tuple(state.constants),
            test_statistics=statistics,
            test_lists=folder / TEST_NBEST,
            curve=tuple(
                self._task.metric.shown(iteration.quality) for iteration in state.iterations
            ),
            seconds=(
                sum(iteration.seconds[0] for iteration in done),
                sum(iteration.seconds[1] for iteration in done),
            ),
        )

    def _write_average(self, features: FeatureSet, states: Sequence[TuningState]) -> None:
        """Write the ini with the weights averaged over the runs; not for rescored lists."""
        if self._candidate.rescoring:
            return
        average = np.mean([normalised(state.best.weights) for state in states], axis=0)
        comment = f"weights averaged over {len(states)} tuning runs by moses-feature {__version__}"
        weights = features.with_weights(average).by_name()
        self._candidate.ini.with_weights(weights, [comment]).write(self._home / AVERAGE_INI)


def _write_translations(nbest: Path, size: int, path: Path) -> None:
    lines = [b" ".join(words) + b"\n" for words in first_translations(nbest, size)]
    write_whole(path, b"".join(lines))
