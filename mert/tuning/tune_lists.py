"""Tune weights on existing n-best lists of any decoder, without decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mert.optimisers.candidates import SearchSpace, normalised
from mert.optimisers.choice import HALVES, Optimizer, cross_optimised
from mert.tuning.pool import HypothesisPool
from moses_feature.metrics.bleu import BLEU
from moses_feature.metrics.metric import Metric
from moses_feature.moses.features import FeatureFunction, FeatureSet
from moses_feature.moses.lines import Sentence
from moses_feature.moses.nbest_formats.reader import MOSES, NbestReader
from moses_feature.moses.nbest_formats.translation import LOG_PROB, TOTAL
from moses_feature.moses.nbest_lists import EXPECTED, VALUES, nbest_lines, read_nbest
from moses_feature.runtime.errors import DataError, FormatError, MosesFeatureError, shown

ORDERING = (TOTAL, LOG_PROB)
"""The features by which other decoders rank their lists."""
NEAR_ZERO = 0.1
"""The best translations of each list exceed this quality if the references belong to them."""


@dataclass(frozen=True)
class TunedLists:
    """The result of tuning on lists; the metric is `Metric.shown`, BLEU by default.

    Attributes:
        features: the features with the weights found, their absolute values summing to 1.
        translations: distinct translations in the lists.
        sentences: sentences with a list.
        first: the metric of the first translation of each list, as the decoder ranked it.
        tuned: the metric of the translations that the weights choose.
        unseen: the same with weights optimised on the other half of the sentences: what to expect
            on other texts.
        best: a lower bound of what the lists offer: the metric if the best translation of each
            sentence is chosen, by the references, or that of the weights where it is higher.
        reason: why the optimiser stopped.
        warnings: caveats about the weights.
    """

    features: FeatureSet
    translations: int
    sentences: int
    first: float
    tuned: float
    unseen: float
    best: float
    reason: str
    warnings: tuple[str, ...]


def features_of(
    lists: str | Path, form: str = MOSES, start: Mapping[str, Sequence[float]] | None = None
) -> FeatureSet:
    """Return the features in the first line of some lists, with start weights.

    Args:
        lists: the file.
        form: its format.
        start: weights by the names of the features; None for those by which the decoder ranks its
            lists, or equal ones if that is not known (in Moses' format).

    Raises:
        FormatError: the line is not one of an n-best list, or has no features.
        MosesFeatureError: weights of other features, or all 0.
    """
    with NbestReader(lists, form) as reader:
        line = next(nbest_lines(reader), None)
        if line is None:
            raise FormatError(lists, EXPECTED, "an empty file")
        by_name = line.labelled()
    if not by_name or not all(by_name.values()):
        found = shown(line.fields[VALUES])
        raise line.error("features, each with a name and values", found)
    width = sum(map(len, by_name.values()))
    weights = {name: (1 / width,) * len(values) for name, values in by_name.items()}
    if orders := next((name for name in ORDERING if name in by_name and form != MOSES), None):
        weights = {name: (float(name == orders),) * len(values) for name, values in by_name.items()}
    if start is not None:
        for name, of_first in by_name.items():
            if len(start.get(name, ())) != len(of_first):
                raise MosesFeatureError(
                    f"{lists}: expected {len(of_first)} start weights of {name}, found "
                    f"{len(start.get(name, ()))}"
                )
        weights = {name: tuple(start[name]) for name in by_name}
    values = [weight for of in weights.values() for weight in of]
    with np.errstate(over="ignore"):
        total = np.abs(values).sum()
    if not 0 < total < np.inf:
        found = ", ".join(f"{weight:g}" for weight in values)
        raise MosesFeatureError(f"start weights: expected some that are not 0, found {found}")
    return FeatureSet(
        tuple(FeatureFunction(name, of, (True,) * len(of)) for name, of in weights.items())
    )


def tune_lists(
    lists: str | Path,
    features: FeatureSet,
    references: Sequence[tuple[Sentence, ...]],
    optimizer: Optimizer,
    seed: int,
    form: str = MOSES,
    metric: Metric = BLEU,
) -> TunedLists:
    """Optimise a metric over lists.

    Args:
        lists: the file, text or compressed, sentences in order.
        features: the features of the lists, with the start weights.
        references: the references of each sentence.
        optimizer: the optimiser of the weights.
        seed: the seed of the optimiser.
        form: the format of the file; see `moses_feature.moses.nbest_formats.reader`.
        metric: the metric to optimise.

    Raises:
        FormatError: a damaged line.
        MosesFeatureError: features that lines do not have in common.
        DataError: less than two lists, or lists that have nothing in common with the references.
    """
    pool = HypothesisPool(references, features.names, metric)
    _, first = pool.add(read_nbest(lists, features, len(references), form))
    if pool.sentences < HALVES:
        raise DataError(f"{lists}: expected lists of {HALVES} sentences and more")
    if 2 * pool.sentences < len(references):
        raise DataError(
            f"{lists}: expected lists of the {len(references):,} sentences of the references, "
            f"found {pool.sentences:,}"
        )
    candidates = pool.candidates()
    without_list = pool.of_sentences_without_list()
    best = candidates.statistics[candidates.closest_to_references()].sum(axis=0) + without_list
    if metric.quality(best) <= 0.0:
        raise DataError(
            f"{lists}: {metric.label} of the best translations of all lists is "
            f"{metric.shown(0.0):.2f}: are the references translations of the same text, in the "
            "same language, and tokenised alike?"
        )
    start = normalised(features.weights)
    optimum = optimizer(candidates, SearchSpace.around(start), seed)
    halves, _ = cross_optimised(candidates, start, optimizer, seed)
    weights = optimum.weights if optimum.quality >= optimum.start_quality else start
    chosen = candidates.statistics[candidates.chosen(candidates.features @ weights)]
    chosen_quality = metric.quality(chosen.sum(axis=0) + without_list)
    first_quality = metric.quality(first.sum(axis=0))
    best_quality = max(metric.quality(best), chosen_quality, first_quality)
    return TunedLists(
        features=features.with_weights(normalised(weights)),
        translations=len(candidates.features),
        sentences=pool.sentences,
        first=metric.shown(first_quality),
        tuned=metric.shown(chosen_quality),
        unseen=metric.shown(metric.quality(halves.sum(axis=0) + without_list)),
        best=metric.shown(best_quality),
        reason=optimum.reason,
        warnings=(
            *_warnings(first_quality, chosen_quality, best_quality),
            *_missing(pool.sentences, len(references)),
        ),
    )


def _missing(lists: int, references: int) -> Iterator[str]:
    """Say how many references have no list: each counts as an empty translation."""
    if lists < references:
        yield (
            f"{references - lists:,} of {references:,} sentences of the references have no list, "
            "and count as empty translations: are the references those of these lists?"
        )


def _warnings(first: float, chosen: float, best: float) -> tuple[str, ...]:
    """Say what is odd about the quality of the first, the chosen and the best translations."""
    warnings = []
    if chosen < first:
        warnings.append(
            "the decoder's own order is better than that of these weights, on the very text: what "
            "orders its lists is not among the features, or the weights to begin with (--start) "
            "are far from it"
        )
    if best < NEAR_ZERO:
        warnings.append(
            "even the best translations of the lists have next to nothing in common with the "
            "references: are they of the same text, in the same order?"
        )
    return tuple(warnings)
