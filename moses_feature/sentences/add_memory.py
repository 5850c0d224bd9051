"""A copy of a sentence network that remembers a text; see `memory`."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

from moses_feature.networks.files import CHECKPOINT, MEMORY, WEIGHTS, has_memory
from moses_feature.networks.known_words import KnownPairs
from moses_feature.networks.phrases import PackedSequences
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import whole_directory, whole_file
from moses_feature.sentences.memory import LEAST_TEMPERATURE, RememberedText, temperature_of
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.sentences.settings import MOST_PIECES, SentenceData
from moses_feature.sentences.texts import MOST_TIMES_LONGEST, SentencePairs

logger = logging.getLogger(__name__)


def add_memory(model: Path, data: SentenceData, directory: Path) -> tuple[int, int]:
    """Write a model that remembers a text; return the pairs that it has, and those left out.

    Args:
        model: a model directory.
        data: the text; only `source`, `target` and `longest` count.
        directory: the new model directory, which is empty or new.

    Raises:
        MosesFeatureError: the directory holds files, or cannot be written, or the text is of other
            languages, or is escaped and that of the training was not.
        FormatError: texts of different lengths, or without pairs, or a damaged model.
    """
    network = SentenceModel(model)
    if has_memory(model):
        raise MosesFeatureError(
            f"{model}: expected a network without a memory, found one with it: "
            "take the one that it was made from"
        )
    with whole_directory(directory) as whole:
        return _add(network, model, data, whole)


def _add(
    network: SentenceModel, model: Path, data: SentenceData, directory: Path
) -> tuple[int, int]:
    """Write the model into an empty directory; see `add_memory`."""
    longest = min(MOST_TIMES_LONGEST * data.longest, MOST_PIECES)
    source, target = network.direction.texts(data.source, data.target)
    known = KnownPairs(f"{model}", (source, target), (network.source, network.target))
    read = SentencePairs(replace(data, direction=network.direction))
    found: dict[tuple[tuple[int, ...], ...], None] = {}
    too_many_pieces = 0
    for pair in read:
        known.add(pair.source, pair.target)
        ids = tuple(network.source.ids(pair.source)), tuple(network.target.ids(pair.target))
        if max(map(len, ids)) > longest:
            too_many_pieces += 1
        else:
            found[ids] = None
    known.check()
    if read.escaped and not network.escaped:
        raise MosesFeatureError(
            f"{model}: expected a text without Moses' escapes (&apos;), as in training, found some"
        )
    if not found:
        expected = f"pairs of 1 to {data.longest} words"
        raise FormatError(Path(data.source), expected, "none")
    if network.escaped and not read.escaped:
        logger.warning(
            "%s and %s have no word that is escaped (&apos;), as the text of the training had: %s",
            data.source,
            data.target,
            "a text that is not escaped is seldom found similar",
        )
    read_side, written_side = (PackedSequences.pack(side) for side in zip(*found, strict=True))
    temperature = temperature_of(read_side, written_side, network.network)
    if not temperature >= LEAST_TEMPERATURE:
        raise MosesFeatureError(f"{model}: expected different states of a network, found none")
    given = read_side, written_side, temperature, network.digest, read.inputs
    RememberedText(*given).save(directory / MEMORY)
    _copy(model, directory)
    return len(found), read.left_out + too_many_pieces


def _copy(model: Path, directory: Path) -> None:
    """Copy the files of a model, its weights last."""
    files = [file for file in model.iterdir() if file.is_file() and file.name != CHECKPOINT]
    for file in sorted(files, key=lambda file: file.name == WEIGHTS):
        with whole_file(directory / file.name) as temporary:
            shutil.copyfile(file, temporary)
