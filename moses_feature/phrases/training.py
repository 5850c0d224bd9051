"""From phrase tables to a trained model directory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import torch

from moses_feature import __version__
from moses_feature.moses.lines import LineReader
from moses_feature.networks.files import FOLDS
from moses_feature.networks.phrases import Hashes
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.cross_fitting import fold_directory, save_folds
from moses_feature.phrases.objective import PhraseData, PhraseObjective
from moses_feature.phrases.pairs import Folds, PairCollection, PhrasePair, count_words, read_pairs
from moses_feature.phrases.settings import TrainingData, TrainingSettings
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM, Json, locked_directory
from moses_feature.training.trainer import (
    INTERRUPTED,
    NO_CONTROL,
    RunControl,
    Trainer,
    holds_model,
    run_or_resume,
)

logger = logging.getLogger(__name__)


def train(
    data: TrainingData,
    settings: TrainingSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Train a model and keep the best one in `directory`, with the checkpoint of the run.

    Args:
        data: the tables and how to read them.
        settings: how to train.
        directory: the model directory; must not hold a model unless the run is resumed.
        device: the device to train on.
        control: stopping, resuming and reporting; see `RunControl`.

    Returns:
        The reason for stopping; `interrupted` if `control.stop` asked for it.

    Raises:
        UsageError: `directory` holds a model already and is not to be resumed.
        OutputError: another run is writing `directory`, or it cannot be written.
        MosesFeatureError: bad data, or nothing to resume.
    """
    ranks = control.ranks
    parts = [directory]
    if data.folds > 1:
        parts = [fold_directory(directory, fold) for fold in range(data.folds)]
    ranks.from_first(lambda: _check(data, directory, parts, control.resume))
    with ExitStack() as stack:
        lock = locked_directory(directory, "training")
        ranks.from_first(lambda: stack.enter_context(lock))
        material = cache(
            lambda: _Material(data, control.command)
        )  # only the first process reads the data
        folds = Folds(data.folds, settings.seed) if data.folds > 1 else None
        if folds is not None:
            ranks.from_first(lambda: save_folds(directory, folds, material().source_hashes()))
        for fold, part in enumerate(parts):
            if folds is not None:
                logger.info("network %d of %d", fold + 1, folds.count)
            learnt = ranks.from_first(partial(_training_set, material, settings, folds, fold))
            if part is parts[-1]:
                material.cache_clear()  # from now on only the numbered pairs are needed
            objective = PhraseObjective(learnt.data, settings, device)
            trainer = Trainer(objective, settings, part, device, learnt.provenance, ranks)
            if (
                reason := run_or_resume(trainer, part, control.stop, control.report, ranks)
            ) == INTERRUPTED:
                break
        return reason


def _check(data: TrainingData, directory: Path, parts: Sequence[Path], resume: bool) -> None:
    """Check that there is something to train and nothing to overwrite."""
    if STANDARD_STREAM in (*data.tables, data.source_text, data.target_text):
        raise UsageError("training reads from files: expected a file name, found -")
    if (directory / FOLDS).exists() and data.folds == 1:
        raise UsageError(f"{directory} holds the networks of several folds: give --folds")
    if data.folds > 1 and holds_model(directory):
        raise UsageError(f"{directory} holds a single network: not with --folds")
    if any(holds_model(part) for part in parts) and not resume:
        raise UsageError(f"{directory} holds a model already: --resume goes on with it")


@dataclass(frozen=True)
class _TrainingSet:
    """The data of one network, and its provenance."""

    data: PhraseData
    provenance: Json


def _training_set(
    material: Callable[[], _Material], settings: TrainingSettings, folds: Folds | None, fold: int
) -> _TrainingSet:
    return material().training_set(settings, folds, fold)


class _Material:
    """The phrase pairs and shortlists of a run, for one or more networks.

    "Source" is the side that the networks read, in either direction.

    Attributes:
        collection: all pairs.
    """

    def __init__(self, data: TrainingData, command: str) -> None:
        inputs: list[Json] = []
        self.collection = collection = PairCollection(_all_pairs(data, inputs))
        if not len(collection):
            raise MosesFeatureError(
                f"{', '.join(data.tables)}: expected phrase pairs to train on, found none"
            )
        read, written = ("source text", data.source_text), ("target text", data.target_text)
        if data.reading.reverse:
            read, written = written, read
        source_counts = _counts(*read, collection.source_counts, inputs)
        target_counts = _counts(*written, collection.target_counts, inputs)
        self._source = Vocabulary.most_frequent(source_counts, data.shortlist)
        self._target = Vocabulary.most_frequent(target_counts, data.shortlist)
        coverage = {
            "source": self._source.coverage(source_counts),
            "target": self._target.coverage(target_counts),
        }
        logger.info(
            "%d unique phrase pairs; the shortlists hold %.2f%% of the running source words and "
            "%.2f%% of the target words",
            len(collection),
            100 * coverage["source"],
            100 * coverage["target"],
        )
        self._words, self._reading = data.words, data.reading
        self._escaped = collection.escaped()
        self._provenance = {
            "command": command,
            "version": __version__,
            "inputs": inputs,
            "shortlist_coverage": coverage,
        }

    def source_hashes(self) -> Hashes:
        """Return the hashes of all source phrases, as the networks see them."""
        return self.collection.source_hashes(self._source)

    def training_set(
        self, settings: TrainingSettings, folds: Folds | None, fold: int
    ) -> _TrainingSet:
        """Return the data of one network: all pairs, or all but those of a fold."""
        pairs = self.collection.pairs(
            self._source,
            self._target,
            settings.held_out,
            settings.held_out_limit,
            settings.seed,
            folds,
            fold,
        )
        provenance = {**self._provenance, "pairs": len(pairs)}
        words = self._source, self._target, self._words, self._escaped
        phrase_data = PhraseData(pairs, *words, self._reading)
        return _TrainingSet(phrase_data, provenance)


def _all_pairs(data: TrainingData, inputs: list[Json]) -> Iterator[PhrasePair]:
    for table in data.tables:
        with LineReader(table) as reader:
            for pair in read_pairs(reader, data.words):
                yield PhrasePair(*data.reading.sides(pair.source, pair.target), pair.count)
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
