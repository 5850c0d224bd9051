"""Cross-fitting: each phrase pair is scored by a network that never saw its source phrase.

The source phrases of the training tables are split into K folds, and network k is trained on all
folds but k. A directory of such networks holds `fold-1` … `fold-K`, each a model directory,
`folds.json`, and `sources.safetensors`, the hashes of the source phrases that were trained on.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from moses_feature.networks.files import FOLDS, is_cross_fitted
from moses_feature.networks.phrases import Hashes
from moses_feature.phrases.model import PhraseModel, load_model
from moses_feature.phrases.pairs import Folds
from moses_feature.phrases.settings import MOST_FOLDS
from moses_feature.runtime.errors import FormatError
from moses_feature.runtime.files import Json, whole_file, write_json
from moses_feature.runtime.json_files import member, read_json

SOURCES = "sources.safetensors"
FORMAT_VERSION = 1


@dataclass(eq=False)
class CrossFittedModel:
    """K networks with the same shortlists; all that they have in common is that of the first one.

    Attributes:
        networks: network k never saw the source phrases of fold k.
        folds: the partition.
        sources: the hashes of the source phrases of all folds, ascending.
    """

    networks: tuple[PhraseModel, ...]
    folds: Folds
    sources: Hashes

    def __post_init__(self) -> None:
        first = self.networks[0]
        self.source, self.target, self.words = first.source, first.target, first.words
        self.escaped, self.direction, self.seed = first.escaped, first.direction, first.seed

    @property
    def training(self) -> Json:
        """Settings and provenance of the first network; the mean held-out loss of all."""
        losses = [network.training["held_out_loss"] for network in self.networks]
        return {**self.networks[0].training, "held_out_loss": sum(losses) / len(losses)}

    @property
    def digest(self) -> str:
        """SHA-256 of the networks, the partition and the source phrases."""
        hashed = hashlib.sha256(json.dumps([self.folds.count, self.folds.seed]).encode())
        for network in self.networks:
            hashed.update(network.digest.encode())
        hashed.update(self.sources.tobytes())
        return hashed.hexdigest()


def fold_directory(directory: Path, fold: int) -> Path:
    """Return the directory of the network of a fold (counted from 0)."""
    return directory / f"fold-{fold + 1}"


def save_folds(directory: Path, folds: Folds, sources: Hashes) -> None:
    """Write the partition and the source hashes; in an existing directory they must be the same.

    Raises:
        FormatError: the directory holds networks of other folds.
    """
    facts = {"format_version": FORMAT_VERSION, "folds": folds.count, "seed": folds.seed}
    path = directory / FOLDS
    if path.exists():
        there = _read_folds(path)
        if there != folds or not np.array_equal(_read_sources(directory / SOURCES), sources):
            raise FormatError(path, f"{folds} of the same tables", f"{there}, or other tables")
        return
    with whole_file(directory / SOURCES) as temporary:
        save_file({"hashes": sources}, temporary)
    write_json(path, facts)


def load_any_model(directory: Path, with_memory: bool = False) -> PhraseModel | CrossFittedModel:
    """Read a model directory, of one network or of cross-fitted ones; see `load_model`.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the files do not belong together.
    """
    if not is_cross_fitted(directory):
        return load_model(directory, with_memory)
    folds = _read_folds(directory / FOLDS)
    networks = tuple(load_model(fold_directory(directory, fold)) for fold in range(folds.count))
    first = networks[0]
    for fold, network in enumerate(networks):
        if _kind(network) != _kind(first):
            expected = "the shortlists, words and direction of fold-1"
            raise FormatError(fold_directory(directory, fold), expected, "others")
    return CrossFittedModel(networks, folds, _read_sources(directory / SOURCES))


def _kind(network: PhraseModel) -> tuple[object, ...]:
    shortlists = network.source.shortlist, network.target.shortlist
    return *shortlists, network.words, network.direction


def _read_folds(path: Path) -> Folds:
    what = "the number and seed of folds"
    facts = read_json(path, what)
    version, count, seed = (
        member(facts, name, int, path, what) for name in ("format_version", "folds", "seed")
    )
    if version != FORMAT_VERSION:
        raise FormatError(path, f"format version {FORMAT_VERSION}", f"version {version}")
    if not 2 <= count <= MOST_FOLDS or not 0 <= seed < 1 << 64:
        raise FormatError(path, what, f"{count} and {seed}")
    return Folds(count, seed)


def _read_sources(path: Path) -> Hashes:
    try:
        sources: Hashes = load_file(path)["hashes"]
    except (OSError, SafetensorError, KeyError) as error:
        raise FormatError(path, "hashes of source phrases", f"a damaged file ({error})") from error
    if sources.dtype != np.uint64 or sources.ndim != 1 or not len(sources):
        raise FormatError(path, "hashes of source phrases", f"{sources.dtype} {sources.shape}")
    return sources
