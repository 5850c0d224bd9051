"""A copy of a sentence network that remembers a text; see `memory`."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

from moses_feature.networks.files import CHECKPOINT, MEMORY, WEIGHTS
from moses_feature.networks.known_words import KnownPairs
from moses_feature.networks.phrases import Phrases
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import whole_file
from moses_feature.sentences.memory import RememberedText, temperature_of
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.sentences.settings import SentenceData
from moses_feature.sentences.texts import MOST_TIMES_LONGEST, SentencePairs


def add_memory(model: Path, data: SentenceData, directory: Path) -> tuple[int, int]:
    """Write a model that remembers a text; return the pairs that it has, and those left out.

    Args:
        model: a model directory.
        data: the text; only `source`, `target` and `longest` count.
        directory: the new model directory, which is empty or new.

    Raises:
        MosesFeatureError: the directory holds files, or cannot be written, the text is of other
            languages, or there is nothing in it.
        FormatError: texts of different lengths, or a damaged model.
    """
    network = SentenceModel(model)
    if (model / MEMORY).is_file():
        raise MosesFeatureError(f"{model}: expected a network without a memory, found one with it")
    if directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        raise MosesFeatureError(f"{directory}: expected a new or an empty directory")
    source, target = network.direction.texts(data.source, data.target)
    known = KnownPairs(f"{model}", (source, target), (network.source, network.target))
    read = SentencePairs(replace(data, direction=network.direction))
    found: dict[tuple[tuple[int, ...], ...], None] = {}
    too_many_pieces = 0
    for pair in read:
        known.add(pair.source, pair.target)
        ids = tuple(network.source.ids(pair.source)), tuple(network.target.ids(pair.target))
        if max(map(len, ids)) > MOST_TIMES_LONGEST * data.longest:
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
    read_side, written_side = (Phrases.pack(side) for side in zip(*found, strict=True))
    temperature = temperature_of(read_side, written_side, network.network)
    if not 0 < temperature < math.inf:
        raise MosesFeatureError(f"{model}: expected different states of a network, found none")
    given = read_side, written_side, temperature, network.digest, read.inputs
    try:
        directory.mkdir(parents=True, exist_ok=True)
        RememberedText(*given).save(directory / MEMORY)
        _copy(model, directory)
    except OSError as error:
        raise MosesFeatureError(f"{directory}: {error.strerror}") from error
    return len(found), read.left_out + too_many_pieces


def _copy(model: Path, directory: Path) -> None:
    """Copy the files of a model, its weights last."""
    files = [file for file in model.iterdir() if file.is_file() and file.name != CHECKPOINT]
    for file in sorted(files, key=lambda file: file.name == WEIGHTS):
        with whole_file(directory / file.name) as temporary:
            shutil.copyfile(file, temporary)
