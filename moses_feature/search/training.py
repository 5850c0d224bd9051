"""From sentence pairs to a trained RNNsearch."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from moses_feature import __version__
from moses_feature.arrays import Integers
from moses_feature.errors import FormatError, MosesFeatureError
from moses_feature.files import Json
from moses_feature.models.vocabulary import Vocabulary
from moses_feature.moses.lines import LineReader
from moses_feature.moses.links import links_of, places_of
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.texts import parallel_lines
from moses_feature.moses.words import WordOptions
from moses_feature.search.guided import GuidedObjective
from moses_feature.search.settings import SearchData, SearchSettings
from moses_feature.training.control import NO_CONTROL, RunControl
from moses_feature.training.links import LinkCollection, Links
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
    links = None
    if data.word_alignment is not None:
        links = pairs.links.links(np.flatnonzero(collection.kept))
    return _TrainingSet(learnt, links, provenance)


class _SentencePairs:
    """The pairs of two texts, as the network reads and writes them, once.

    Attributes:
        left_out: pairs with a sentence that is empty or too long.
        links: of the others, where there is a word alignment.
        inputs: where they come from, when all are read.

    Raises:
        FormatError: files of different lengths, or a bad alignment.
    """

    def __init__(self, data: SearchData) -> None:
        self._data = data
        self.left_out = 0
        self.links = LinkCollection()
        self.inputs: list[Json] = []

    def __iter__(self) -> Iterator[PhrasePair]:
        data = self._data
        paths = {"source": data.source, "target": data.target}
        if data.word_alignment is not None:
            paths["word alignment"] = data.word_alignment
        with ExitStack() as stack:
            readers = [stack.enter_context(LineReader(path)) for path in paths.values()]
            what = "both texts" if len(readers) == 2 else "both texts and the word alignment"
            for source, target, *alignment in parallel_lines(readers, what):
                pair = tokens(source), tokens(target)
                links = [self._places(text, pair, readers[-1]) for text in alignment]
                if all(0 < len(words) <= data.longest for words in pair):
                    for read, written in links:
                        self.links.add(read, written)
                    yield PhrasePair(*data.reading.sides(*pair), 1.0)
                else:
                    self.left_out += 1
            self.inputs = [
                reader.provenance(role) for role, reader in zip(paths, readers, strict=True)
            ]

    def _places(
        self, text: bytes, pair: tuple[list[bytes], list[bytes]], reader: LineReader
    ) -> tuple[Integers, Integers]:
        """Return the places that the network reads and writes of links, with those of END."""
        try:
            links = links_of(text.strip(), *map(len, pair))
        except ValueError as error:
            expected, found = error.args
            raise FormatError(reader.path, expected, found, reader.line_number) from None
        reading = self._data.reading
        words, writes = map(len, reading.sides(*pair))
        read, written = reading.places(*places_of(links), writes)
        return np.append(read, words), np.append(written, writes)
