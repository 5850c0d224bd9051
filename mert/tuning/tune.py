"""Tune the weights of a system: decode, merge the n-best lists, optimise, repeat (Och 2003).

A work directory holds everything: `state.json`, the n-best list of each iteration in Moses' format
(`run1.best100.out.gz`), at the end all hypotheses as feature and score files for Moses' own
optimisers, and `moses.ini` with the best weights. Each step is on disk when it is done. Numbers are
read back from these files, so that a resumed run finds exactly the same weights.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mert.decoders.decoder import Decoder
from mert.optimisers.candidates import SearchSpace, normalised
from mert.optimisers.choice import optimizer
from mert.optimisers.moses_files import write_candidates, write_weights
from mert.settings import TuningSettings
from mert.tuning.corpus import Corpus
from mert.tuning.pool import HypothesisPool
from mert.tuning.state import (
    FEATURES,
    RESCORING_WEIGHTS,
    SCORES,
    STATE,
    TUNED_INI,
    Iteration,
    TuningState,
    lists_name,
    read_state,
    remove_results,
    run_identity,
)
from moses_feature import __version__
from moses_feature.metrics import metric_of
from moses_feature.metrics.bleu import BLEU
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.nbest_lists import read_nbest
from moses_feature.runtime.arrays import Floats, Integers
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import Json, locked_directory, whole_file, write_json

logger = logging.getLogger(__name__)

NEAR_ZERO = 0.03
"""Even random weights pass this quality, if system and references have the same language."""
KNOWN_AND_NEW = 2
"""Iterations with weights that were there: those known before, and these with new features."""
FAR_BELOW = 0.5
"""A share of the best quality below which an iteration is explained."""
SAMPLE, MANY_SEARCH_ERRORS = 100, 0.3
"""Sentences searched again with wider limits; the share of errors to warn of."""


def tune(
    ini: MosesIni,
    corpus: Corpus,
    decoder: Decoder,
    directory: Path,
    settings: TuningSettings,
    *,
    identity: Json,
    command: str = "",
    force: bool = False,
    first_lists: Path | None = None,
    known: FeatureSet | None = None,
    notes: Sequence[str] = (),
    enough: Callable[[], bool] = lambda: False,
    report: Callable[[str, int], None] = lambda *_: None,
) -> TuningState:
    """Tune the weights of `ini`, and write `moses.ini` with the best ones into `directory`.

    A run in `directory` that was killed continues, and so does one that had ended for lack of
    iterations, if it may have more; any other that has ended is returned as it is.

    Args:
        ini: the system.
        corpus: the development set.
        decoder: a decoder of the system and the corpus.
        directory: created if missing.
        settings: how to tune.
        identity: other facts that must be the same for a run to be resumed; see `identity_of`.
        command: the command line, recorded in the ini.
        force: tune even if BLEU is almost 0 at the start.
        first_lists: the file of the first iteration's lists, if another run with the same identity
            may have written it.
        known: the features with weights that were tuned before, 0 for new features. The first
            iteration translates with them, so that they are kept if nothing better is found; it
            does not count. The second one gives the new features their weights in the ini.
        notes: comments for the file of weights that only rerank lists.
        enough: called after each iteration; returns whether it is to be the last one.
        report: called with the current task and the number of sentences decoded.

    Raises:
        UsageError: the directory holds a run of something else, or there is no weight to tune.
        OutputError: another run is at work there.
        MosesFeatureError: BLEU is almost 0, or the decoder fails.
    """
    if not decoder.features.names:
        raise UsageError(f"{ini.path}: expected a weight to tune, found none that is tuneable")
    with locked_directory(directory, "tuning"):
        run = _Tuning(
            ini, corpus, decoder, directory, settings, identity, force, first_lists, known, report
        )
        while not run.state.stopped:
            run.iterate(enough)
        run.write_results(command, notes)
    return run.state


class _Tuning:
    """One tuning run and its directory."""

    def __init__(
        self,
        ini: MosesIni,
        corpus: Corpus,
        decoder: Decoder,
        directory: Path,
        settings: TuningSettings,
        identity: Json,
        force: bool,
        first_lists: Path | None,
        known: FeatureSet | None,
        report: Callable[[str, int], None],
    ) -> None:
        self._ini = ini
        self._corpus = corpus
        self._decoder = decoder
        self._directory = directory
        self._settings = settings
        self._force = force
        self._first_lists = first_lists
        self._report = report
        self._features: FeatureSet = decoder.features
        self._metric = metric_of(settings.metric)
        self._pool = HypothesisPool(corpus.references, decoder.features.names, self._metric)
        most = settings.max_iterations
        self.state = state = read_state(directory, run_identity(identity, settings), most)
        more = state.goes_on_with(most)
        state.max_iterations = most
        if not state.iterations:
            state.began_known = known is not None
        self._known = known if state.began_known else None
        self._most = most + state.began_known
        if state.iterations and (more or not (state.stopped and self._tuned_ini.exists())):
            self._read_earlier()
        if more:
            self._go_on()

    def _read_earlier(self) -> None:
        """Read the hypotheses of the finished iterations."""
        for number in range(1, len(self.state.iterations) + 1):
            self._add(number)
        logger.info("going on after iteration %d", len(self.state.iterations))

    def _go_on(self) -> None:
        """Open a run again that had ended for lack of iterations."""
        remove_results(self._directory)
        number = len(self.state.iterations)
        self.state.stopped = ""
        self._optimise(number, self.state.iterations[-1])
        write_json(self._directory / STATE, asdict(self.state))

    @property
    def _tuned_ini(self) -> Path:
        return self._directory / TUNED_INI

    def _lists(self, number: int) -> Path:
        return self._directory / lists_name(number, self._settings)

    def _add(self, number: int) -> tuple[int, Integers]:
        """Add the lists of an iteration.

        Returns:
            the number of hypotheses that no earlier iteration had found; and the statistics
            (width,) of the best translations of all sentences, summed.
        """
        lists = read_nbest(self._lists(number), self._features, len(self._corpus))
        new, of_best = self._pool.add(lists)
        return new, of_best.sum(axis=0)

    def iterate(self, enough: Callable[[], bool]) -> None:
        """Run the next iteration and save the state."""
        state = self.state
        number = len(state.iterations) + 1
        start = (self._known or self._features).weights[self._features.tuneable]
        if number > 1:
            start = np.array(state.iterations[-1].next_weights)
        path = self._lists(number)
        began = time.monotonic()
        if not path.exists():
            self._decode(number, start, path)
        decoded = time.monotonic()
        new, statistics = self._add(number)
        quality = self._metric.quality(statistics)
        iteration = Iteration(start.tolist(), quality, new, self._pool.hypotheses)
        if number == 1:
            self._check_quality(quality, statistics)
        state.iterations.append(iteration)
        if number == 1:
            spread = self._pool.candidates().spread()
            state.spread = spread.tolist()
            state.constants = [self._features.names[n] for n in np.flatnonzero(spread == 0.0)]
            for name in state.constants:
                logger.warning(
                    "%s is the same for all translations of every sentence: its weight does "
                    "nothing (a constant column of the phrase table?)",
                    name,
                )
        if new == 0 and not (self._known and number <= KNOWN_AND_NEW):
            state.stopped = "no new hypotheses"
        elif number >= self._most:
            state.stopped = f"{number} iteration{'s' if number > 1 else ''} done"
        elif enough():
            state.stopped = "its time is spent"
        else:
            self._optimise(number, iteration)
        iteration.seconds = (round(decoded - began, 2), round(time.monotonic() - decoded, 2))
        write_json(self._directory / STATE, asdict(state))
        self._log(number, iteration)

    def _optimise(self, number: int, iteration: Iteration) -> None:
        """Find the weights of the next iteration."""
        if self._known and number == 1:
            iteration.next_weights = self._with_new_features(self._known).tolist()
            iteration.reason = "the new features get their weights of the ini"
            return
        start, settings = np.array(iteration.weights), self._settings
        optimize = optimizer(settings.algorithm, settings.restarts, settings.random_directions)
        space, seed = SearchSpace.around(start), settings.seed * 1000 + number
        optimum = optimize(self._pool.candidates(), space, seed)
        change = np.abs(normalised(optimum.weights) - normalised(start)).max()
        iteration.next_weights = optimum.weights.tolist()
        iteration.optimised_quality = optimum.quality
        iteration.change = float(change)
        iteration.reason = optimum.reason
        if change < settings.settled:
            self.state.stopped = f"no weight changed by more than {settings.settled:g}"

    def _with_new_features(self, known: FeatureSet) -> Floats:
        """Return known weights (tuneable,), and those of the ini for new features, to scale."""
        tuned, own = (of.weights[of.tuneable] for of in (known, self._features))
        new = tuned == 0
        scale = np.abs(tuned).sum() / (np.abs(own[~new]).sum() or 1.0)
        weights: Floats = np.where(new, scale * own, tuned)
        return weights

    def _decode(self, number: int, weights: Floats, path: Path) -> None:
        """Decode the n-best lists of an iteration into a file."""
        own = number == 1 and self._known is None
        if own and self._first_lists is not None and self._first_lists.exists():
            with whole_file(path) as temporary:
                shutil.copyfile(self._first_lists, temporary)
            return
        self._decoder.write_nbest(
            self._features.with_weights(weights),
            self._settings.list_size,
            path,
            lambda done: self._report(f"iteration {number}: decoding", done),
        )

    def _check_quality(self, quality: float, statistics: Integers) -> None:
        """Check the first translations, of which there are statistics (width,).

        Raises:
            MosesFeatureError: the quality is so low that something must be wrong. The state of the
                run is removed.
        """
        candidates, of = self._pool.candidates(), self._metric
        has_matches = candidates.quality_of(candidates.statistics[:, 0].astype(float)) > 0.0
        if (quality > 0.0 or has_matches) and (quality >= NEAR_ZERO or self._force):
            return
        for path in (self._lists(1), self._directory / STATE):
            path.unlink(missing_ok=True)
        hint = " (--force tunes all the same)" if has_matches else ""
        found = ""
        if of is BLEU:
            precisions = 100 * statistics[0:-1:2] / np.maximum(statistics[1:-1:2], 1)
            shares = ", ".join(f"{p:.1f}%" for p in precisions)
            found = f" (1- to 4-grams found in the references: {shares})"
        raise MosesFeatureError(
            f"{of.label} of the first translations is {of.shown(quality):.2f}{found}: are the "
            "references translations of this text, in the target language, tokenised and cased "
            "like the system's output?"
            f"{hint}"
        )

    def _log(self, number: int, iteration: Iteration) -> None:
        logger.info(
            "iteration %d: %s %.2f; %d new hypotheses of %d; the lists took %.1f s",
            number,
            self._metric.label,
            self._metric.shown(iteration.quality),
            iteration.new,
            iteration.hypotheses,
            iteration.seconds[0],
        )
        if iteration.quality < FAR_BELOW * self.state.best.quality:
            logger.info(
                "  far below the best iteration: weights that are right for the few translations "
                "found so far may be wrong for all others; these are now found, too"
            )
        if iteration.optimised_quality is not None:
            logger.info(
                "  optimised in %.1f s: %s %.2f on all that was found; greatest change %.4f\n  %s",
                iteration.seconds[1],
                self._metric.label,
                self._metric.shown(iteration.optimised_quality),
                iteration.change or 0.0,
                (self._features.template() % tuple(normalised(iteration.next_weights))).decode(),
            )

    def _log_search_errors(self, tuned: FeatureSet) -> None:
        """Log how much a wider search would change."""
        errors = self._decoder.search_errors(tuned, SAMPLE)
        if errors is not None and errors.sentences:
            share = errors.found / errors.sentences
            logger.log(
                logging.WARNING if share > MANY_SEARCH_ERRORS else logging.INFO,
                "a search twice as wide finds a translation of a higher total for %d of the first "
                "%d sentences%s",
                errors.found,
                errors.sentences,
                " (--pop-limit sets its limit)" if share > MANY_SEARCH_ERRORS else "",
            )

    def write_results(self, command: str, notes: Sequence[str]) -> None:
        """Write the ini with the best weights, and the files for Moses' optimisers."""
        state, best = self.state, self.state.best
        number = state.iterations.index(best) + 1
        logger.info(
            "tuning ended: %s; the best iteration is number %d of %d, %s %.2f",
            state.stopped,
            number,
            len(state.iterations),
            self._metric.label,
            self._metric.shown(best.quality),
        )
        tuned = self._features.with_weights(best.weights)
        if self._tuned_ini.exists():
            return
        self._log_search_errors(tuned)
        outputs = self._directory / FEATURES, self._directory / SCORES
        write_candidates(*outputs, self._pool.candidates(), self._metric.label)
        weights = tuned.by_name()
        what = "weights"
        if not weights.keys() <= {feature.name for feature in self._ini.features}:
            write_weights(self._directory / RESCORING_WEIGHTS, tuned, notes)
            weights = {}  # these weights only rerank the lists; the search keeps its own
            what = f"{RESCORING_WEIGHTS}, by which lists of this search are put in order,"
        comments = [
            f"{what} tuned by moses-feature {__version__} ({self._settings.algorithm}, seed "
            f"{self._settings.seed}): {self._metric.label} {self._metric.shown(best.quality):.2f} "
            f"on {self._corpus.paths[0]} in "
            f"iteration {number} of {len(state.iterations)}",
            *([f"command: {command}"] if command else []),
        ]
        self._ini.with_weights(weights, comments).write(self._tuned_ini)
