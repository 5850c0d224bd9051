"""From phrase tables to a trained model directory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import torch

from moses_feature.moses.lines import LineReader
from moses_feature.networks.files import FOLDS
from moses_feature.networks.phrases import Hashes
from moses_feature.networks.vocabulary import Shortlists
from moses_feature.phrases.cross_fitting import fold_directory, save_folds
from moses_feature.phrases.objective import PhraseData, PhraseObjective
from moses_feature.phrases.pairs import Folds, PairCollection, PhrasePair, count_words, read_pairs
from moses_feature.phrases.settings import TrainingData, TrainingSettings
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import Json
from moses_feature.training.runs import train_networks
from moses_feature.training.trainer import NO_CONTROL, RunControl, holds_model

logger = logging.getLogger(__name__)


def train(
    data: TrainingData,
    settings: TrainingSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Train a model and keep the best one in `directory`, with the checkpoint of the run.

    With `data.folds`, a network for each fold is trained, one after the other. Arguments, result
    and errors are those of `train_networks`.
    """
    material = cache(lambda: _Pairs(data))  # only the first process reads
    folds = Folds(data.folds, settings.seed) if data.folds > 1 else None

    def prepare() -> None:
        if folds is not None:
            save_folds(directory, folds, material().source_hashes())

    def read(fold: int) -> tuple[PhraseData, Json]:
        if folds is not None:
            logger.info("network %d of %d", fold + 1, folds.count)
        learnt = material().material(settings, folds, fold)
        if fold == data.folds - 1:
            material.cache_clear()  # from now on only the numbered pairs are needed
        return learnt

    parts = [fold_directory(directory, fold) if folds else directory for fold in range(data.folds)]
    if (directory / FOLDS).exists() and folds is None:
        raise UsageError(f"{directory} holds the networks of several folds: give --folds")
    if folds is not None and holds_model(directory):
        raise UsageError(f"{directory} holds a single network: not with --folds")
    return train_networks(
        [name for name in (*data.tables, data.source_text, data.target_text) if name is not None],
        {part: partial(read, fold) for fold, part in enumerate(parts)},
        lambda of_pairs: PhraseObjective(of_pairs, settings, device),
        settings,
        directory,
        device,
        control,
        prepare,
    )


class _Pairs:
    """The phrase pairs and shortlists of a run, for one or more networks.

    "Source" is the side that the networks read, in either direction.

    Attributes:
        collection: all pairs.
    """

    def __init__(self, data: TrainingData) -> None:
        inputs: list[Json] = []
        self.collection = collection = PairCollection(_all_pairs(data, inputs))
        if not len(collection):
            raise MosesFeatureError(
                f"{', '.join(data.tables)}: expected phrase pairs to train on, found none"
            )
        read, written = ("source text", data.source_text), ("target text", data.target_text)
        if data.direction.reverse:
            read, written = written, read
        source_counts = _counts(*read, collection.source_counts, inputs)
        target_counts = _counts(*written, collection.target_counts, inputs)
        shortlists = Shortlists.of_counts(source_counts, target_counts, data.shortlist, 0)
        self._source, self._target = shortlists.source, shortlists.target
        logger.info(
            "%d unique phrase pairs; the shortlists hold %.2f%% of the running source words and "
            "%.2f%% of the target words",
            len(collection),
            *(100 * share for share in shortlists.coverage.values()),
        )
        self._words, self._direction = data.words, data.direction
        self._escaped = collection.escaped()
        self._provenance = {
            "inputs": inputs,
            "shortlist_coverage": shortlists.coverage,
        }

    def source_hashes(self) -> Hashes:
        """Return the hashes of all source phrases, as the networks see them."""
        return self.collection.source_hashes(self._source)

    def material(
        self, settings: TrainingSettings, folds: Folds | None, fold: int
    ) -> tuple[PhraseData, Json]:
        """Return what one network learns from: all pairs, or all but those of a fold."""
        pairs = self.collection.pairs(
            self._source,
            self._target,
            settings.held_out,
            settings.held_out_limit,
            settings.seed,
            folds,
            fold,
        )
        words = self._source, self._target, self._words, self._escaped
        phrase_data = PhraseData(pairs, *words, self._direction)
        return phrase_data, {**self._provenance, "pairs": len(pairs)}


def _all_pairs(data: TrainingData, inputs: list[Json]) -> Iterator[PhrasePair]:
    for table in data.tables:
        with LineReader(table) as reader:
            for pair in read_pairs(reader, data.words):
                yield PhrasePair(*data.direction.sides(pair.source, pair.target), pair.count)
            inputs.append(reader.provenance("table"))


def _counts(
    role: str,
    text: str | None,
    table_counts: Callable[[], dict[bytes, float]],
    inputs: list[Json],
) -> dict[bytes, float]:
    if text is None:
        return table_counts()
    with LineReader(text) as reader:
        counts = count_words(reader)
        inputs.append(reader.provenance(role))
    if not counts:
        raise MosesFeatureError(f"{text}: expected words for a shortlist, found none")
    return counts
