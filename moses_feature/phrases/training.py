"""From phrase tables to a trained model directory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch

from moses_feature.moses.lines import LineReader
from moses_feature.networks.architectures import PairSizes
from moses_feature.networks.vocabulary import Shortlists
from moses_feature.phrases.fitting import fitting_sizes, sizes_of_run
from moses_feature.phrases.objective import PhraseData, PhraseObjective
from moses_feature.phrases.pairs import PairCollection, PhrasePair, count_words, read_pairs
from moses_feature.phrases.settings import TrainingData, TrainingSettings
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.training.runs import train_network
from moses_feature.training.trainer import NO_CONTROL, RunControl

logger = logging.getLogger(__name__)


def train(
    data: TrainingData,
    settings: TrainingSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
    *,
    fits: bool = False,
) -> str:
    """Train a model and keep the best one in `directory`, with the checkpoint of the run.

    With `fits`, sizes are those of the run that began in `directory`, or a smaller network is taken
    if the time is short; see `fitting_sizes`. Other arguments, result and errors are those of
    `train_network`.
    """

    def begin(pairs: PhraseData) -> tuple[PhraseObjective, TrainingSettings]:
        chosen = settings
        if fits:
            sizes: PairSizes | None = control.ranks.from_first(lambda: sizes_of_run(directory))
            alone = control.ranks.count == 1 and device.type == "cpu"
            if sizes is None and alone and settings.minutes is not None:
                sizes = fitting_sizes(pairs, settings, directory, device)
            chosen = replace(settings, sizes=sizes or settings.sizes)
        return PhraseObjective(pairs, chosen, device), chosen

    return train_network(
        [name for name in (*data.tables, data.source_text, data.target_text) if name is not None],
        lambda: _Pairs(data).material(settings),
        begin,
        directory,
        device,
        control,
    )


class _Pairs:
    """The phrase pairs and shortlists of a run.

    "Source" is the side that the network reads, in either direction.

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

    def material(self, settings: TrainingSettings) -> tuple[PhraseData, Json]:
        """Return what the network learns from, and its provenance."""
        pairs = self.collection.pairs(
            self._source,
            self._target,
            settings.held_out,
            settings.held_out_limit,
            settings.seed,
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
