"""Tune a system whose n-best lists are rescored: first the search by itself, then all weights.

Weights that rank lists well together with a new feature may be bad for a search without that
feature. So the weights of the search are tuned without it, and then fixed. Systems that differ only
in their rescoring models thus share one tuning of the search. The order has an optimiser of its
own.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mert.decoders.decoder import Decoder
from mert.decoders.rescored import RescoredDecoder
from mert.settings import ORDERED_BY, TuningSettings
from mert.tuning.corpus import Corpus
from mert.tuning.state import (
    RESCORING_WEIGHTS,
    SEARCH,
    STATE,
    TUNED_INI,
    TuningState,
    has_ended,
    read_run,
    read_state,
    remove_results,
    run_identity,
)
from mert.tuning.tune import tune
from moses_feature.metrics import metric_of
from moses_feature.moses.features import FeatureSet, WeightsByName
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.system_directory import built_of, write_tuned
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import Json, locked_directory

logger = logging.getLogger(__name__)


def tune_system(
    ini: MosesIni,
    corpus: Corpus,
    decoder: Decoder | RescoredDecoder,
    directory: Path,
    settings: TuningSettings,
    *,
    identity: Json,
    first_lists: Path | None = None,
    other_runs: Iterable[Path] = (),
    before: WeightsByName | None = None,
    renew: bool = False,
    **options: Any,
) -> TuningState:
    """Tune a system like `tune`; if its lists are rescored, first tune the search, in a folder.

    Arguments, result and errors are those of `tune`. If one of `other_runs` (directories of tuning
    runs) has tuned the same search already, its files are copied. `before` has the weights of a
    tuned system without the new features: they are kept if nothing better is found. In the same
    way the order of the search is kept if what rescores its lists does not help on `corpus`; the
    system is then written without it. A run that began with other weights of `before` is refused,
    or with `renew` begins anew; one of version 0.2 continues as it began.
    """
    rescored = decoder if isinstance(decoder, RescoredDecoder) else None
    search, plain = directory, decoder
    if rescored is not None:
        search, plain = directory / SEARCH, rescored.plain
        first_lists = first_lists and first_lists.parent / SEARCH / first_lists.name
        logger.info("tuning the search without what rescores its lists")
        _prepare_order(directory, identity, settings)
    if _is_of_version_2(search):
        before = None
    known = None if before is None else _begun_by(plain.features, before)
    search_identity = {
        **identity,
        "decoder": _without_rescoring(identity["decoder"]),
        "before": None if known is None else known.weights.tolist(),
    }
    if renew:
        _forget_other_start(search, search_identity)
    _copy_same_run(other_runs, search, search_identity, settings)
    given = {"identity": search_identity, "first_lists": first_lists, "known": known, **options}
    state = tune(ini, corpus, plain, search, settings, **given)
    models: Sequence[tuple[str, str]] = []
    if rescored is not None:
        given = {"identity": identity, **options}
        state, models = _tune_order(rescored, corpus, directory, settings, given)
    _write_system(directory, ini, models, corpus, settings, state)
    return state


def _prepare_order(directory: Path, identity: Json, settings: TuningSettings) -> None:
    """Refuse a directory of something else now, and not when the search is tuned."""
    search = directory / SEARCH
    with locked_directory(directory, "tuning"):
        if (search / STATE).exists() and read_run(search).goes_on_with(settings.max_iterations):
            remove_results(directory, lists_too=True)  # they are of the search as it was
        read_state(directory, run_identity(identity, _ordering(settings)), settings.max_iterations)


def _ordering(settings: TuningSettings) -> TuningSettings:
    """Return the settings of tuning the order of lists."""
    return replace(settings, algorithm=ORDERED_BY)


def _tune_order(
    decoder: RescoredDecoder,
    corpus: Corpus,
    directory: Path,
    settings: TuningSettings,
    given: Json,
) -> tuple[TuningState, Sequence[tuple[str, str]]]:
    """Tune the order of a tuned search's lists; return the models that help, too."""
    tuned = MosesIni.read(directory / SEARCH / TUNED_INI)
    decoder.search_with(tuned)
    logger.info("tuning the order of its lists")
    notes = [f"{name} is the feature of {path}" for name, path in decoder.models]
    known = decoder.features.begun_by(tuned.weights_by_name())
    run = tuned, corpus, decoder, directory, _ordering(settings)
    state = tune(*run, known=known, notes=notes, **given)
    if state.kept != "known":
        return state, decoder.models
    metric = metric_of(settings.metric)
    logger.warning(
        "%s does not help: %s %.2f on %s with and without it; the system stays as it was",
        ", ".join(dict.fromkeys(name for name, _ in decoder.models)),
        metric.label,
        metric.shown(state.best.quality),
        corpus.paths[0],
    )
    return state, []


def _begun_by(features: FeatureSet, before: WeightsByName) -> FeatureSet:
    """Return features with the weights of a tuned system, 0 for new ones.

    Raises:
        UsageError: there are no weights, or some of features that are not among these.
    """
    known = features.begun_by(before)
    if not any(any(values) for values in before.values()):
        raise UsageError("weights to start with: expected some that are not 0, found none")
    if known is None:
        others = ", ".join(sorted(before.keys() - features.by_name().keys())) or "more scores"
        raise UsageError(
            "weights to start with: expected those of features of the system to tune, found those "
            f"of others: {others}"
        )
    return known


def _write_system(
    directory: Path,
    ini: MosesIni,
    rescoring: Sequence[tuple[str, str]],
    corpus: Corpus,
    settings: TuningSettings,
    state: TuningState,
) -> None:
    """Write what translating needs to know of the tuned system."""
    tuned = {
        "texts": dict(zip(corpus.paths, corpus.digests, strict=True)),
        "metric": settings.metric,
        "quality": state.best.quality,
    }
    built = built_of(Path(ini.path))
    weights = RESCORING_WEIGHTS if rescoring else None
    write_tuned(directory, built, rescoring, weights, settings.list_size, tuned)


def _without_rescoring(decoder: Json) -> Json:
    return {name: value for name, value in decoder.items() if name != "rescoring"}


def _is_of_version_2(directory: Path) -> bool:
    """Return whether a run is there that knew nothing of weights to begin with."""
    return (directory / STATE).exists() and "before" not in read_run(directory).identity


def _forget_other_start(directory: Path, identity: Json) -> None:
    """Let a run begin anew that began with other weights of a smaller system."""
    if not (directory / STATE).exists():
        return
    if read_run(directory).identity.get("before") != identity["before"]:
        logger.warning("%s begins anew: the weights that it began with are others now", directory)
        with locked_directory(directory, "tuning"):
            remove_results(directory, lists_too=True)


def _copy_same_run(
    others: Iterable[Path], directory: Path, identity: Json, settings: TuningSettings
) -> None:
    """Copy the results of a finished run of the same system, unless the directory has a run."""
    if directory.exists():
        return
    for other in others:
        if has_ended(other, identity, settings):
            logger.info("%s has tuned the same already: its files are copied", other)
            directory.parent.mkdir(parents=True, exist_ok=True)
            copy = directory.with_name(f".{directory.name}.copy")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(other, copy, ignore=shutil.ignore_patterns(SEARCH, "test.*", ".*"))
            MosesIni.read(other / TUNED_INI).write(copy / TUNED_INI)
            copy.rename(directory)
            return
