"""From sentence pairs to a trained RNNsearch."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import torch

from moses_feature import __version__
from moses_feature.errors import FormatError, MosesFeatureError
from moses_feature.files import Json
from moses_feature.models.vocabulary import Vocabulary
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import WordOptions
from moses_feature.search.settings import SearchData, SearchSettings
from moses_feature.training.control import NO_CONTROL, RunControl
from moses_feature.training.phrase_objective import PhraseData, PhraseObjective
from moses_feature.training.phrase_pairs import PairCollection, PhrasePair
from moses_feature.training.single import train_single

logger = logging.getLogger(__name__)


def train_search(
    data: SearchData,
    settings: SearchSettings,
    directory: Path,
    device: torch.device,
    control: RunControl = NO_CONTROL,
) -> str:
    """Train RNNsearch and keep the best model in `directory`, with the run's checkpoint.

    Result and errors are those of `train_single`.
    """
    return train_single(
        (data.source, data.target),
        lambda: _training_set(data, settings, control.command),
        lambda learnt: PhraseObjective(learnt.data, settings, device),
        settings,
        directory,
        device,
        control,
    )


@dataclass(frozen=True)
class _TrainingSet:
    """What a network is trained on, and where it comes from."""

    data: PhraseData
    provenance: Json


def _training_set(data: SearchData, settings: SearchSettings, command: str) -> _TrainingSet:
    pairs = _SentencePairs(data)
    collection = PairCollection(pairs)
    if len(collection) < 2:
        raise MosesFeatureError(
            f"{data.source}: expected sentence pairs to train on, found {len(collection)} of "
            f"1 to {data.longest} words"
        )
    source_counts, target_counts = collection.source_counts(), collection.target_counts()
    source, target = (
        Vocabulary.shortlist_of(counts, data.shortlist, data.min_count)
        for counts in (source_counts, target_counts)
    )
    coverage = {
        "source": source.coverage(source_counts),
        "target": target.coverage(target_counts),
    }
    logger.info(
        "%d different sentence pairs%s; the shortlists have %d and %d words, %.2f%% and %.2f%% of "
        "the running words",
        len(collection),
        f" ({pairs.left_out} were empty or too long)" if pairs.left_out else "",
        *(len(vocabulary.shortlist) for vocabulary in (source, target)),
        *(100 * share for share in coverage.values()),
    )
    limits = settings.held_out, settings.held_out_limit, settings.seed
    learnt = PhraseData(
        collection.pairs(source, target, *limits),
        source,
        target,
        WordOptions(),
        collection.escaped(),
        data.reading,
    )
    provenance = {
        "command": command,
        "version": __version__,
        "inputs": pairs.inputs,
        "shortlist_coverage": coverage,
        "pairs": len(learnt.pairs),
        "left_out": pairs.left_out,
    }
    return _TrainingSet(learnt, provenance)


class _SentencePairs:
    """The pairs of two texts, as the network reads and writes them, once.

    Attributes:
        left_out: pairs with a sentence that is empty or too long.
        inputs: where they come from, when all are read.
    """

    def __init__(self, data: SearchData) -> None:
        self._data = data
        self.left_out = 0
        self.inputs: list[Json] = []

    def __iter__(self) -> Iterator[PhrasePair]:
        data = self._data
        with LineReader(data.source) as sources, LineReader(data.target) as targets:
            for source, target in zip_longest(sources, targets):
                if source is None or target is None:
                    short, other = (data.source, sources), (data.target, targets)
                    if target is None:
                        short, other = other, short
                    found = f"the end of {short[0]}"
                    expected = "as many lines in both texts"
                    raise FormatError(other[0], expected, found, other[1].line_number)
                pair = tokens(source), tokens(target)
                if all(0 < len(words) <= data.longest for words in pair):
                    yield PhrasePair(*data.reading.sides(*pair), 1.0)
                else:
                    self.left_out += 1
            self.inputs = [sources.provenance("source"), targets.provenance("target")]
