"""From sentence pairs to a trained RNNsearch."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from moses_feature import __version__
from moses_feature.errors import MosesFeatureError
from moses_feature.files import Json
from moses_feature.models.shortlists import Shortlists
from moses_feature.moses.words import WordOptions
from moses_feature.search.guided import GuidedObjective
from moses_feature.search.settings import SearchData, SearchSettings
from moses_feature.search.texts import SentencePairs
from moses_feature.training.control import NO_CONTROL, RunControl
from moses_feature.training.links import Links
from moses_feature.training.phrase_objective import PhraseData, PhraseObjective
from moses_feature.training.phrase_pairs import PairCollection
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
        [path for path in (data.source, data.target, data.word_alignment) if path is not None],
        lambda: _training_set(data, settings, control.command),
        lambda learnt: _objective(learnt, settings, device),
        settings,
        directory,
        device,
        control,
    )


@dataclass(frozen=True)
class _TrainingSet:
    """What a network is trained on, and where it comes from."""

    data: PhraseData
    links: Links | None
    provenance: Json


def _objective(
    learnt: _TrainingSet, settings: SearchSettings, device: torch.device
) -> PhraseObjective:
    if learnt.links is None:
        return PhraseObjective(learnt.data, settings, device)
    return GuidedObjective(learnt.data, learnt.links, settings, device)


def _training_set(data: SearchData, settings: SearchSettings, command: str) -> _TrainingSet:
    pairs = SentencePairs(data)
    collection = PairCollection(pairs)
    if len(collection) < 2:
        raise MosesFeatureError(
            f"{data.source}: expected sentence pairs to train on, found {len(collection)} of "
            f"1 to {data.longest} words"
        )
    if data.word_alignment is not None and pairs.unlinked == len(pairs.links):
        raise MosesFeatureError(
            f"{data.word_alignment}: expected links such as 0-0 1-2, found none in "
            f"{pairs.unlinked} sentence pairs"
        )
    shortlists = Shortlists.of_counts(
        collection.source_counts(), collection.target_counts(), data.shortlist, data.min_count
    )
    notes = [f"{pairs.left_out} were empty or too long"] if pairs.left_out else []
    notes += [f"{pairs.unlinked} have no links"] if pairs.unlinked else []
    logger.info(
        "%d different sentence pairs%s; %s",
        len(collection),
        f" ({', '.join(notes)})" if notes else "",
        shortlists,
    )
    source, target = shortlists.source, shortlists.target
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
        "shortlist_coverage": shortlists.coverage,
        "pairs": len(learnt.pairs),
        "left_out": pairs.left_out,
    }
    links = None
    if data.word_alignment is not None:
        provenance["unlinked"] = pairs.unlinked
        links = pairs.links.links(np.flatnonzero(collection.kept))
    return _TrainingSet(learnt, links, provenance)
